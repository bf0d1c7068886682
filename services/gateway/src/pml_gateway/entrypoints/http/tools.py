"""GET /api/tools and /api/servers."""

from typing import Annotated

from fastapi import APIRouter, Depends

from pml_gateway.domain.api.views import ServerList, ServerView, ToolList
from pml_gateway.entrypoints.http.routing import CallerOf, api_router
from pml_gateway.ports import AllowedTools, Caller, ToolServers


def tool_routes(allowed: AllowedTools, servers: ToolServers, caller_of: CallerOf) -> APIRouter:
    """Routes that read the connected MCP servers and their tools."""
    router = api_router("tools")

    @router.get("/tools", operation_id="list_tools")
    async def list_tools(caller: Annotated[Caller, Depends(caller_of)]) -> ToolList:
        """List the tools of all connected servers, without those that the policy denies."""
        return ToolList(tools=tuple(await allowed.list_tools(caller.scope)))

    @router.get("/servers", operation_id="list_servers")
    async def list_servers(_: Annotated[Caller, Depends(caller_of)]) -> ServerList:
        """List the configured servers with the state of their connections."""
        views = [
            ServerView(
                name=name,
                state=status.state,
                error=status.error,
                tools=status.tools,
                since=status.since,
                hints_trusted=status.hints_trusted,
                warnings=status.warnings,
                announced=status.announced,
            )
            for name, status in sorted(servers.status().items())
        ]
        return ServerList(servers=tuple(views))

    return router
