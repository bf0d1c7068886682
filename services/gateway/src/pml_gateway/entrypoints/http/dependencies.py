"""GET, POST and DELETE of /api/capabilities/{id or name}/dependencies."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.dependencies import (
    AddDependency,
    AddedDependency,
    DependencyPage,
    DependencyType,
    Direction,
    EdgeSource,
    ListDependencies,
    RemovedDependencies,
    RemoveDependency,
)
from pml_gateway.domain.api.list_cursors import sole_cursor
from pml_gateway.domain.api.request import Request
from pml_gateway.entrypoints.http.routing import (
    CONFLICT,
    NOT_FOUND,
    CallerOf,
    ListCursor,
    Offset,
    api_router,
)
from pml_gateway.ports import Caller


class NewDependency(Request):
    """A dependency on another capability, which is named by its id or name."""

    to_capability_id: str
    edge_type: DependencyType
    edge_source: EdgeSource = "template"


def dependency_routes(query_client: QueryClient, caller_of: CallerOf) -> APIRouter:
    """Routes that read and change the dependencies of capabilities."""
    router = api_router("dependencies")

    @router.get(
        "/capabilities/{reference}/dependencies",
        operation_id="list_dependencies",
        responses=NOT_FOUND,
    )
    async def list_dependencies(
        reference: str,
        caller: Annotated[Caller, Depends(caller_of)],
        direction: Direction = "both",
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        offset: Offset = 0,
        cursor: ListCursor = None,
    ) -> DependencyPage:
        """List the dependencies of a capability's latest version, or of the version with this id:
        on others (`out`), of others on it (`in`), or both."""
        query = ListDependencies(
            scope=caller.scope,
            principal=caller.principal,
            reference=reference,
            direction=direction,
            limit=limit,
            offset=offset,
            cursor=sole_cursor(cursor, offset),
        )
        return await query_client.request(catalog.LIST_DEPENDENCIES, query)

    @router.post(
        "/capabilities/{reference}/dependencies",
        operation_id="add_dependency",
        status_code=HTTPStatus.CREATED,
        responses={
            200: {"model": AddedDependency, "description": "It existed, and stays as it is."},
            **NOT_FOUND,
            **CONFLICT,
        },
    )
    async def add_dependency(
        reference: str,
        body: NewDependency,
        response: Response,
        caller: Annotated[Caller, Depends(caller_of)],
    ) -> AddedDependency:
        """Add a dependency of one capability on another. Templates of type `contains` and
        `dependency` must not form a cycle."""
        query = AddDependency(
            scope=caller.scope,
            principal=caller.principal,
            reference=reference,
            to=body.to_capability_id,
            edge_type=body.edge_type,
            edge_source=body.edge_source,
        )
        added = await query_client.request(catalog.ADD_DEPENDENCY, query)
        if not added.created:
            response.status_code = HTTPStatus.OK
        return added

    @router.delete(
        "/capabilities/{reference}/dependencies/{to}",
        operation_id="remove_dependency",
        responses=NOT_FOUND,
    )
    async def remove_dependency(
        reference: str,
        to: str,
        caller: Annotated[Caller, Depends(caller_of)],
        edge_type: DependencyType | None = None,
    ) -> RemovedDependencies:
        """Remove the dependencies of one capability on another, or the one of a type. What runs
        show is learned again."""
        query = RemoveDependency(
            scope=caller.scope,
            principal=caller.principal,
            reference=reference,
            to=to,
            edge_type=edge_type,
        )
        return await query_client.request(catalog.REMOVE_DEPENDENCY, query)

    return router
