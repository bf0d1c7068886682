"""GET /api/index, POST /api/index/reindex."""

from typing import Annotated

from fastapi import APIRouter, Depends

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.search_index import IndexState, Reindex, ShowIndex
from pml_gateway.entrypoints.http.routing import CONFLICT, NOT_APPROVER, CallerOf, api_router
from pml_gateway.ports import Caller


def index_routes(
    query_client: QueryClient, caller_of: CallerOf, approver_of: CallerOf
) -> APIRouter:
    """Routes for operators of the vector index."""
    router = api_router("index")

    @router.get("/index", operation_id="show_index")
    async def show_index(caller: Annotated[Caller, Depends(caller_of)]) -> IndexState:
        """Show where vectors are searched, the embedding models, changes that the index has not had
        yet, and the last rebuild with its progress."""
        return await query_client.request(catalog.SHOW_INDEX, ShowIndex(scope=caller.scope))

    @router.post("/index/reindex", operation_id="reindex", responses={**NOT_APPROVER, **CONFLICT})
    async def reindex(caller: Annotated[Caller, Depends(approver_of)]) -> IndexState:
        """Rebuild the vector index from Postgres in the background; what Postgres does not have is
        removed from it. Idempotent: a rebuild under way goes on. An index in Postgres needs none,
        which is a conflict."""
        query = Reindex(scope=caller.scope, principal=caller.principal)
        return await query_client.request(catalog.REINDEX, query)

    return router
