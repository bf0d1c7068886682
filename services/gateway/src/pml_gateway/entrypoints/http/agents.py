"""POST /api/execute and /api/discover."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_common.telemetry.spans import note_workflow
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse, Intent
from pml_gateway.domain.api.request import MAX_OFFSET
from pml_gateway.domain.api.request import Request as ApiRequest
from pml_gateway.entrypoints.http.routing import (
    CONFLICT,
    GONE,
    NOT_FOUND,
    TOO_MANY,
    CallerOf,
    api_router,
)
from pml_gateway.ports import AgentApi, Caller, CallerSide


class DiscoverRequest(ApiRequest):
    """Find tools and capabilities for an intent."""

    intent: Intent
    type: Literal["tool", "capability", "all"] = "all"
    min_score: float = Field(default=0.0, ge=0, le=1)
    limit: int = Field(default=10, ge=1, le=100)
    offset: int = Field(default=0, ge=0, lt=MAX_OFFSET)


def execute_routes(agents: AgentApi, caller_of: CallerOf) -> APIRouter:
    """Routes that run programs."""
    router = api_router("execution")

    @router.post(
        "/execute",
        operation_id="execute",
        response_model=ExecuteResponse,
        responses={**NOT_FOUND, **CONFLICT, **GONE, **TOO_MANY},
    )
    async def execute(
        body: ExecuteRequest, request: Request, caller: Annotated[Caller, Depends(caller_of)]
    ) -> Response:
        """Run a program (`code`, `dag` or `tool`) or a capability (`capability`), or get
        suggestions for an `intent`.

        Responds when the workflow has ended or waits for approval, or after the time to wait
        (`running`). The workflow continues if the caller disconnects.
        """
        side = CallerSide(is_gone=request.is_disconnected)
        answer = await agents.execute(caller.scope, caller.principal, body, side)
        if answer.workflow_id is not None:
            note_workflow(answer.workflow_id)
        return Response(answer.brief(body.detail).to_json(), media_type="application/json")

    return router


def discover_routes(agents: AgentApi, caller_of: CallerOf) -> APIRouter:
    """Routes that find tools and capabilities."""
    router = api_router("discovery")

    @router.post("/discover", operation_id="discover")
    async def discover(
        body: DiscoverRequest, caller: Annotated[Caller, Depends(caller_of)]
    ) -> DiscoveryPage:
        """Find tools and capabilities for an intent, best match first."""
        return await agents.discover(
            Discover(
                scope=caller.scope,
                principal=caller.principal,
                intent=body.intent,
                type=body.type,
                min_score=body.min_score,
                limit=body.limit,
                offset=body.offset,
            )
        )

    return router
