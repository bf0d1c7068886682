"""DELETE /api/principals/{principal}, GET /api/principal-deletions."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from pml_gateway.application.delete_principal import PrincipalData
from pml_gateway.domain.api.principals import DeletedPart, PrincipalDeletions
from pml_gateway.entrypoints.http.routing import (
    NOT_APPROVER,
    CallerOf,
    ListCursor,
    api_router,
    with_optional_key,
)
from pml_gateway.ports import Caller

PrincipalName = Annotated[str, Path(min_length=1, max_length=256)]


def principal_routes(principals: PrincipalData, caller_of: CallerOf) -> APIRouter:
    """Routes that delete the data of principals."""
    router = api_router("principals")

    @router.delete(
        "/principals/{principal}", operation_id="delete_principal_data", responses=NOT_APPROVER
    )
    async def delete_principal_data(
        principal: PrincipalName,
        caller: Annotated[Caller, Depends(caller_of)],
        cursor: ListCursor = None,
    ) -> DeletedPart:
        """Delete the data of a principal of the scope, part by part: of every workflow that has
        ended as `DELETE /api/workflows/{workflow_id}` does, its traces and its opinions. The
        principal itself and an admin may. Learned values stay, and the names in records of who did
        what."""
        return await principals.delete(caller, principal, cursor)

    @router.get("/principal-deletions", operation_id="list_principal_deletions")
    async def list_principal_deletions(
        caller: Annotated[Caller, Depends(caller_of)],
    ) -> PrincipalDeletions:
        """List the last 200 deletions of principals' data, newest first."""
        return await principals.list(caller)

    return with_optional_key(router)
