"""GET /api/tools."""

from typing import Annotated

from fastapi import APIRouter, Depends

from pml_common.bus.port import QueryClient
from pml_gateway.application.learned_outputs import with_learned_outputs
from pml_gateway.domain.api.views import ToolList
from pml_gateway.entrypoints.http.routing import CallerOf, api_router
from pml_gateway.ports import AllowedTools, Caller


def tool_routes(allowed: AllowedTools, query_client: QueryClient, caller_of: CallerOf) -> APIRouter:
    """Routes that read the tools of the connected MCP servers."""
    router = api_router("tools")

    @router.get("/tools", operation_id="list_tools")
    async def list_tools(caller: Annotated[Caller, Depends(caller_of)]) -> ToolList:
        """List the tools of all connected servers, without those that the policy denies and those
        in quarantine. `learned_output` is what results showed so far of a tool without an output
        schema: later ones may differ."""
        tools = await allowed.list_tools(caller.scope)
        shown, notice = await with_learned_outputs(tools, caller.scope, query_client)
        return ToolList(tools=tuple(shown), notices=() if notice is None else (notice,))

    return router
