"""POST /api/learning/rebuild."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.learner import RebuildLearning, RebuildProgress
from pml_gateway.domain.api.request import Request
from pml_gateway.entrypoints.http.routing import NOT_APPROVER, NOT_FOUND, CallerOf, api_router
from pml_gateway.ports import Caller


class Rebuild(Request):
    """The capability to rebuild, or all; `after` is that of the answer before."""

    capability_id: UUID | None = None
    after: UUID | None = None


def learning_routes(query_client: QueryClient, approver_of: CallerOf) -> APIRouter:
    """Routes that change what was learned."""
    router = api_router("learning")

    @router.post(
        "/learning/rebuild",
        operation_id="rebuild_learning",
        responses={**NOT_APPROVER, **NOT_FOUND},
    )
    async def rebuild_learning(
        body: Rebuild, caller: Annotated[Caller, Depends(approver_of)]
    ) -> RebuildProgress:
        """Recompute a bounded part of what capabilities learned, from their stored traces. While
        the answer has capabilities left, go on with its `after`; to cancel, do not. Idempotent."""
        query = RebuildLearning(
            scope=caller.scope, capability_id=body.capability_id, after=body.after
        )
        return await query_client.request(catalog.REBUILD_LEARNING, query)

    return router
