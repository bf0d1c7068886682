"""GET /api/approvals; GET and POST /api/workflows/{id}/approval."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from pml_common.telemetry.spans import note_workflow
from pml_gateway.application.decide import Decisions
from pml_gateway.application.workflow_service import no_such_workflow
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.errors import NotFound
from pml_gateway.domain.api.list_cursors import decode_after
from pml_gateway.domain.api.views import ApprovalPage, ApprovalView, approval_of
from pml_gateway.domain.workflow.approval import Decide
from pml_gateway.domain.workflow.deletion import require_kept
from pml_gateway.entrypoints.http.routing import (
    CONFLICT,
    GONE,
    NOT_APPROVER,
    NOT_FOUND,
    CallerOf,
    ListCursor,
    Offset,
    api_router,
)
from pml_gateway.ports import Caller, WorkflowStore


def approval_routes(
    workflows: WorkflowStore, decisions: Decisions, caller_of: CallerOf, approver_of: CallerOf
) -> APIRouter:
    """Routes that read and decide approvals."""
    router = api_router("approvals")

    @router.get("/approvals", operation_id="list_approvals")
    async def list_approvals(
        caller: Annotated[Caller, Depends(caller_of)],
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Offset = 0,
        cursor: ListCursor = None,
    ) -> ApprovalPage:
        """List pending approvals: what would run, and why a person must approve."""
        return await workflows.waiting(caller.scope, limit, offset, decode_after(cursor, offset))

    @router.get(
        "/workflows/{workflow_id}/approval",
        operation_id="get_approval",
        responses={**NOT_FOUND, **GONE},
    )
    async def get_approval(
        workflow_id: UUID,
        caller: Annotated[Caller, Depends(caller_of)],
        whole: Annotated[bool, Query()] = True,
    ) -> ApprovalView:
        """Return the pending or last approval of a workflow: all calls, with long values truncated
        if `whole` is false, and the decision."""
        found = await workflows.get(caller.scope, workflow_id)
        if found is None:
            raise no_such_workflow(caller.scope, workflow_id)
        require_kept(found)
        if found.approval is None:
            raise NotFound(f"workflow {workflow_id} has not needed an approval")
        return approval_of(found, found.approval, whole=whole)

    @router.post(
        "/workflows/{workflow_id}/approval",
        operation_id="decide",
        response_model=ExecuteResponse,
        responses={**NOT_APPROVER, **NOT_FOUND, **CONFLICT},
    )
    async def decide(
        workflow_id: UUID,
        body: Decide,
        caller: Annotated[Caller, Depends(approver_of)],
    ) -> Response:
        """Decide an approval, once and before it expires."""
        note_workflow(workflow_id)
        answer = await decisions.decide(caller, workflow_id, body)
        return Response(answer.brief().to_json(), media_type="application/json")

    return router
