"""POST /api/workflows/{id}/cancel."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response

from pml_common.telemetry import vocabulary
from pml_gateway.application.cancel import Cancellations
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.workflow.cancellation import Cancel
from pml_gateway.entrypoints.http.callers import CONFLICT, NOT_FOUND, CallerOf, api_router
from pml_gateway.entrypoints.http.tracing import serving
from pml_gateway.ports import Caller


def cancel_routes(cancellations: Cancellations, caller_of: CallerOf) -> APIRouter:
    """Want no more of a workflow."""
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
        request: Request,
        caller: Annotated[Caller, Depends(caller_of)],
    ) -> Response:
        """End a workflow, wherever it stands. It fails as `cancelled`, in words that say what it
        has done and what nobody knows."""
        with serving(request, "/api/workflows/{workflow_id}/cancel") as span:
            span.set_attribute(vocabulary.WORKFLOW_ID, str(workflow_id))
            answer = await cancellations.cancel(caller, workflow_id, body)
        return Response(answer.to_json(), media_type="application/json")

    return router
