"""GET /api/traces/{capability_id} and /api/workflows/{id}/trace."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.learner import ListTraces, TracePage
from pml_gateway.domain.api.list_cursors import sole_cursor
from pml_gateway.entrypoints.http.routing import CallerOf, ListCursor, Offset, api_router
from pml_gateway.ports import Caller


def trace_routes(query_client: QueryClient, caller_of: CallerOf) -> APIRouter:
    """Routes that read traces."""
    router = api_router("traces")

    @router.get("/traces/{capability_id}", operation_id="list_traces")
    async def list_traces(
        capability_id: UUID,
        caller: Annotated[Caller, Depends(caller_of)],
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
        offset: Offset = 0,
        cursor: ListCursor = None,
    ) -> TracePage:
        """List the traces of a capability, newest first."""
        query = ListTraces(
            scope=caller.scope,
            capability_id=capability_id,
            limit=limit,
            offset=offset,
            cursor=sole_cursor(cursor, offset),
        )
        return await query_client.request(catalog.LIST_TRACES, query)

    @router.get("/workflows/{workflow_id}/trace", operation_id="get_workflow_trace")
    async def get_workflow_trace(
        workflow_id: UUID, caller: Annotated[Caller, Depends(caller_of)]
    ) -> TracePage:
        """Return the trace of a workflow and the first 199 traces nested in it; empty until they
        are learned."""
        query = ListTraces(scope=caller.scope, workflow_id=workflow_id, limit=200)
        return await query_client.request(catalog.LIST_TRACES, query)

    return router
