"""GET /api/graph/hypergraph and /api/graph/path."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.dependencies import FindPath, GraphPath, Hypergraph, ShowHypergraph
from pml_gateway.entrypoints.http.routing import NOT_FOUND, CallerOf, api_router
from pml_gateway.ports import Caller


def graph_routes(query_client: QueryClient, caller_of: CallerOf) -> APIRouter:
    """Routes that read the graph of tools and capabilities."""
    router = api_router("graph")

    @router.get("/graph/hypergraph", operation_id="show_hypergraph")
    async def show_hypergraph(
        caller: Annotated[Caller, Depends(caller_of)],
        limit: Annotated[int, Query(ge=1, le=2000)] = 500,
        edge_limit: Annotated[int, Query(ge=0, le=5000)] = 500,
    ) -> Hypergraph:
        """Return the graph of the scope: the nodes of highest PageRank, with their communities, the
        heaviest edges between them, and each capability as a hyperedge between its tools."""
        query = ShowHypergraph(
            scope=caller.scope, principal=caller.principal, limit=limit, edge_limit=edge_limit
        )
        return await query_client.request(catalog.SHOW_HYPERGRAPH, query, timeout=20.0)

    @router.get("/graph/path", operation_id="find_path", responses=NOT_FOUND)
    async def find_path(
        start: Annotated[str, Query(alias="from")],
        end: Annotated[str, Query(alias="to")],
        caller: Annotated[Caller, Depends(caller_of)],
    ) -> GraphPath:
        """Return the shortest path between two nodes: ids of tools, ids or names of capabilities.
        An edge is the longer the less it weighs."""
        query = FindPath(scope=caller.scope, principal=caller.principal, start=start, end=end)
        return await query_client.request(catalog.FIND_PATH, query, timeout=20.0)

    return router
