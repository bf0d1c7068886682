"""GET /api/approvals and POST /api/workflows/{id}/approval."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response

from pml_common.telemetry import vocabulary
from pml_gateway.application.decide import Decisions
from pml_gateway.application.workflow_service import no_such_workflow
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.errors import NotFound
from pml_gateway.domain.api.views import ApprovalPage, ApprovalView, approval_of
from pml_gateway.domain.workflow.approval import Decide
from pml_gateway.entrypoints.http.callers import (
    CONFLICT,
    NOT_APPROVER,
    NOT_FOUND,
    CallerOf,
    api_router,
)
from pml_gateway.entrypoints.http.tracing import serving
from pml_gateway.ports import Caller, WorkflowStore


def approval_routes(
    workflows: WorkflowStore, decisions: Decisions, caller_of: CallerOf, approver_of: CallerOf
) -> APIRouter:
    """See what waits for a person, and decide if one is that person."""
    router = api_router("approvals")

    @router.get("/approvals", operation_id="list_approvals")
    async def list_approvals(
        caller: Annotated[Caller, Depends(caller_of)],
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Annotated[int, Query(ge=0)] = 0,
    ) -> ApprovalPage:
        """What waits for a person: what would run, and why somebody must agree."""
        return await workflows.waiting(caller.scope, limit, offset)

    @router.get(
        "/workflows/{workflow_id}/approval", operation_id="get_approval", responses=NOT_FOUND
    )
    async def get_approval(
        workflow_id: UUID,
        caller: Annotated[Caller, Depends(caller_of)],
        whole: Annotated[bool, Query()] = True,
    ) -> ApprovalView:
        """What a workflow waits for, or waited for last: all calls, with whole values unless
        `whole` is false, and the decision."""
        found = await workflows.get(caller.scope, workflow_id)
        if found is None:
            raise no_such_workflow(caller.scope, workflow_id)
        if found.approval is None:
            raise NotFound(f"nobody was asked about workflow {workflow_id}")
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
        request: Request,
        caller: Annotated[Caller, Depends(approver_of)],
    ) -> Response:
        """Let a workflow run, or not. A decision counts once and only in time."""
        with serving(request, "/api/workflows/{workflow_id}/approval") as span:
            span.set_attribute(vocabulary.WORKFLOW_ID, str(workflow_id))
            answer = await decisions.decide(caller, workflow_id, body)
        return Response(answer.to_json(), media_type="application/json")

    return router
