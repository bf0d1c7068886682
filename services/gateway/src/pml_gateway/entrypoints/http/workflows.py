"""GET /api/workflows, GET and DELETE /api/workflows/{id}, its console and DAG; POST
/api/workflows/{id}/cancel."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from pml_common.telemetry.spans import note_workflow
from pml_gateway.application.cancel import Cancellations
from pml_gateway.application.delete_data import Deletions
from pml_gateway.application.workflow_service import WorkflowService, no_such_workflow
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.console import ConsolePage, console_page
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.list_cursors import decode_after
from pml_gateway.domain.api.views import WorkflowPage, WorkflowView, view_of
from pml_gateway.domain.sources.dag_trace import DagView
from pml_gateway.domain.sources.dag_trace import view_of as dag_view
from pml_gateway.domain.workflow.cancellation import Cancel
from pml_gateway.domain.workflow.deletion import require_kept
from pml_gateway.entrypoints.http.routing import (
    CONFLICT,
    GONE,
    NOT_FOUND,
    CallerOf,
    ListCursor,
    Offset,
    api_router,
)
from pml_gateway.ports import Caller, WorkflowStore


def workflow_routes(
    workflows: WorkflowStore, service: WorkflowService, caller_of: CallerOf
) -> APIRouter:
    """Routes that read workflows."""
    router = api_router("workflows")

    @router.get("/workflows", operation_id="list_workflows")
    async def list_workflows(
        caller: Annotated[Caller, Depends(caller_of)],
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Offset = 0,
        cursor: ListCursor = None,
    ) -> WorkflowPage:
        """List workflows, newest first."""
        return await workflows.page(caller.scope, limit, offset, decode_after(cursor, offset))

    @router.get(
        "/workflows/{workflow_id}",
        operation_id="get_workflow",
        responses={**NOT_FOUND, **GONE},
    )
    async def get_workflow(
        workflow_id: UUID, caller: Annotated[Caller, Depends(caller_of)]
    ) -> WorkflowView:
        """Return a workflow with all its details."""
        found = await service.read(caller.scope, workflow_id)
        if found is None:
            raise no_such_workflow(caller.scope, workflow_id)
        await service.deliver(found, caller.principal)
        return view_of(found)

    @router.get(
        "/workflows/{workflow_id}/console",
        operation_id="get_workflow_console",
        responses={**NOT_FOUND, **GONE},
    )
    async def get_workflow_console(
        workflow_id: UUID,
        caller: Annotated[Caller, Depends(caller_of)],
        limit: Annotated[int, Query(ge=1, le=5000)] = 1000,
        offset: Offset = 0,
    ) -> ConsolePage:
        """Return lines that the program wrote to its console, oldest first, once its run has ended
        or parked. The last 256 KiB of them (bytes of JSON) are kept; `lost` others came before."""
        found = await service.read(caller.scope, workflow_id)
        if found is None:
            raise no_such_workflow(caller.scope, workflow_id)
        return console_page(found.run or found.parked, offset, limit)

    @router.get(
        "/workflows/{workflow_id}/dag",
        operation_id="get_workflow_dag",
        responses={**NOT_FOUND, **CONFLICT, **GONE},
    )
    async def get_workflow_dag(
        workflow_id: UUID, caller: Annotated[Caller, Depends(caller_of)]
    ) -> DagView:
        """Return the calls of a finished run as a DAG that can be executed again."""
        found = await workflows.get(caller.scope, workflow_id)
        if found is None:
            raise no_such_workflow(caller.scope, workflow_id)
        require_kept(found)
        if found.run is None:
            raise Conflict(f"the run of workflow {workflow_id} has not finished: it has no DAG")
        structure = found.analysis.structure if found.analysis else None
        calls, args = found.run.task_results, found.requested.args
        return dag_view(workflow_id, calls, structure, args)

    return router


def cancel_routes(cancellations: Cancellations, caller_of: CallerOf) -> APIRouter:
    """Routes that cancel workflows."""
    router = api_router("workflows")

    @router.post(
        "/workflows/{workflow_id}/cancel",
        operation_id="cancel_workflow",
        response_model=ExecuteResponse,
        responses={**NOT_FOUND, **CONFLICT},
    )
    async def cancel(
        workflow_id: UUID,
        body: Cancel,
        caller: Annotated[Caller, Depends(caller_of)],
    ) -> Response:
        """Cancel a workflow in any state. It fails as `cancelled`, with a message that lists its
        calls and those whose outcome is unknown."""
        note_workflow(workflow_id)
        answer = await cancellations.cancel(caller, workflow_id, body)
        return Response(answer.brief().to_json(), media_type="application/json")

    return router


def deletion_routes(deletions: Deletions, caller_of: CallerOf) -> APIRouter:
    """Routes that delete the data of workflows."""
    router = api_router("workflows")

    @router.delete(
        "/workflows/{workflow_id}",
        operation_id="delete_workflow",
        status_code=HTTPStatus.NO_CONTENT,
        responses={**NOT_FOUND, **CONFLICT},
    )
    async def delete_workflow(
        workflow_id: UUID, caller: Annotated[Caller, Depends(caller_of)]
    ) -> None:
        """Delete the data of an own workflow that has ended: program, arguments, result, error,
        logs, calls, cached results and traces. Left are its id, state, caller and times; its
        `idempotency_key` stays used, and the capability learned from it stays."""
        await deletions.delete(caller, workflow_id)

    return router
