"""POST /api/discover."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import Field

from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_gateway.domain.api.api import Intent, Request
from pml_gateway.entrypoints.http.callers import CallerOf, api_router
from pml_gateway.ports import AgentApi, Caller


class DiscoverRequest(Request):
    """What somebody wants to do, and what may serve it."""

    intent: Intent
    type: Literal["tool", "capability", "all"] = "all"
    min_score: float = Field(default=0.0, ge=0, le=1)
    limit: int = Field(default=10, ge=1, le=100)
    offset: int = Field(default=0, ge=0)


def discover_routes(agents: AgentApi, caller_of: CallerOf) -> APIRouter:
    """Find tools and capabilities."""
    router = api_router("discovery")

    @router.post("/discover", operation_id="discover")
    async def discover(
        body: DiscoverRequest, caller: Annotated[Caller, Depends(caller_of)]
    ) -> DiscoveryPage:
        """Tools and capabilities for an intent, best first."""
        return await agents.discover(
            Discover(
                scope=caller.scope,
                intent=body.intent,
                type=body.type,
                min_score=body.min_score,
                limit=body.limit,
                offset=body.offset,
            )
        )

    return router
