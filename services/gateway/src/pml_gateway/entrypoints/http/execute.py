"""POST /api/execute."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from pml_common.telemetry import vocabulary
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.entrypoints.http.callers import CONFLICT, NOT_FOUND, TOO_MANY, CallerOf, api_router
from pml_gateway.entrypoints.http.tracing import serving
from pml_gateway.ports import AgentApi, Caller


def execute_routes(agents: AgentApi, caller_of: CallerOf) -> APIRouter:
    """Run programs."""
    router = api_router("execution")

    @router.post(
        "/execute",
        operation_id="execute",
        response_model=ExecuteResponse,
        responses={**NOT_FOUND, **CONFLICT, **TOO_MANY},
    )
    async def execute(
        body: ExecuteRequest, request: Request, caller: Annotated[Caller, Depends(caller_of)]
    ) -> Response:
        """Run a program (`code`) or a capability (`capability`), or find one (`intent` alone).

        Answers when it has ended, waits for approval, or has run out of time to wait (`running`);
        the workflow goes on whether or not somebody waits.
        """
        with serving(request, "/api/execute") as span:
            answer = await agents.execute(caller.scope, caller.principal, body)
            if answer.workflow_id is not None:
                span.set_attribute(vocabulary.WORKFLOW_ID, str(answer.workflow_id))
        return Response(answer.to_json(), media_type="application/json")

    return router
