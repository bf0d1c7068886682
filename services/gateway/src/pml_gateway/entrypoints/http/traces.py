"""GET /api/traces, /api/traces/{capability_id}, /api/trace/{id} and /api/workflows/{id}/trace."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from pml_common.contracts.learner import (
    ExecutionTrace,
    ListTraces,
    TraceOrder,
    TracePage,
)
from pml_gateway.application.read_traces import Traces
from pml_gateway.domain.api.list_cursors import sole_cursor
from pml_gateway.entrypoints.http.routing import (
    NOT_FOUND,
    CallerOf,
    ListCursor,
    Offset,
    api_router,
)
from pml_gateway.ports import Caller


def trace_routes(reading: Traces, caller_of: CallerOf) -> APIRouter:
    """Routes that read traces."""
    router = api_router("traces")

    @router.get("/traces", operation_id="search_traces")
    async def search_traces(
        caller: Annotated[Caller, Depends(caller_of)],
        capability_id: UUID | None = None,
        workflow_id: UUID | None = None,
        intent: Annotated[str | None, Query(min_length=1, max_length=10_000)] = None,
        order: TraceOrder = "newest",
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
        offset: Offset = 0,
        cursor: ListCursor = None,
    ) -> TracePage:
        """List the traces that all given filters let through, `intent` as its exact text: newest
        first, or by priority, the highest first. `total` counts no more than 10,000."""
        query = ListTraces(
            scope=caller.scope,
            capability_id=capability_id,
            workflow_id=workflow_id,
            intent=intent,
            order=order,
            limit=limit,
            offset=offset,
            cursor=sole_cursor(cursor, offset),
        )
        return await reading.page(query)

    @router.get("/trace/{trace_id}", operation_id="get_trace", responses=NOT_FOUND)
    async def get_trace(
        trace_id: UUID, caller: Annotated[Caller, Depends(caller_of)]
    ) -> ExecutionTrace:
        """Return one trace."""
        return await reading.find(caller.scope, trace_id)

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
        return await reading.page(query)

    @router.get("/workflows/{workflow_id}/trace", operation_id="get_workflow_trace")
    async def get_workflow_trace(
        workflow_id: UUID, caller: Annotated[Caller, Depends(caller_of)]
    ) -> TracePage:
        """Return the trace of a workflow and the first 199 traces nested in it; empty until they
        are learned."""
        query = ListTraces(scope=caller.scope, workflow_id=workflow_id, limit=200)
        return await reading.page(query)

    return router
