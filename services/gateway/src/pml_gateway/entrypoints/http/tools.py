"""GET /api/tools."""

from typing import Annotated

from fastapi import APIRouter, Depends

from pml_gateway.domain.api.views import ToolList
from pml_gateway.entrypoints.http.routing import CallerOf, api_router
from pml_gateway.ports import AllowedTools, Caller


def tool_routes(allowed: AllowedTools, caller_of: CallerOf) -> APIRouter:
    """Routes that read the tools of the connected MCP servers."""
    router = api_router("tools")

    @router.get("/tools", operation_id="list_tools")
    async def list_tools(caller: Annotated[Caller, Depends(caller_of)]) -> ToolList:
        """List the tools of all connected servers, without those that the policy denies and those
        in quarantine."""
        return ToolList(tools=tuple(await allowed.list_tools(caller.scope)))

    return router
