"""Programs that name an MCP server which is still being connected."""

import asyncio
from collections.abc import Collection
from typing import Final

from pml_common.bus.errors import Retryable
from pml_gateway.domain.api.api import ExecuteRequest, program_of
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.mcp_names import may_be_of
from pml_gateway.domain.servers.named_servers import named_in
from pml_gateway.ports import ToolServers, never_listed

MOST_S: Final = 30.0
"""For which a program waits before it is analysed."""

_TOLD_WITHIN_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.05


async def until_known(request: ExecuteRequest, tools: ToolServers, within_s: float) -> None:
    """Wait until programs find the tools of the servers that a request's program names, or those
    servers have failed; `within_s` at most."""
    if not _coming(tools):
        return
    try:
        program = program_of(request) or ""
    except InvalidRequest:
        return  # it is not accepted either
    named = set(named_in(program, _coming(tools)))
    clock = asyncio.get_running_loop().time
    deadline = clock() + min(within_s, MOST_S)
    while named & set(_coming(tools)) and clock() < deadline:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(_LOOK_EVERY_S)


async def until_listed(tool: str, tools: ToolServers, within_s: float) -> bool:
    """Wait until the servers that a tool of this name may belong to, and that told no tools since
    this process began, list them or are given up; whether there are such servers."""
    coming = [
        name
        for name, server in tools.status().items()
        if server.state != "ready" and not server.tools and may_be_of(tool, name)
    ]
    await asyncio.gather(*(tools.reach(name, min(within_s, MOST_S)) for name in coming))
    return bool(coming)


async def until_told(named: Collection[str], tools: ToolServers) -> None:
    """Wait, five seconds at most, for the servers of these tools that told no tools since this
    process began: decisions and grants are made on their definitions."""
    servers = {tool.partition(":")[0] for tool in named if never_listed(tools, tool)}
    await asyncio.gather(*(tools.reach(server, _TOLD_WITHIN_S) for server in servers))


async def require_told(named: Collection[str], tools: ToolServers) -> None:
    """As `until_told`. Raises Retryable while one is still being connected for the first time."""
    await until_told(named, tools)
    for tool in named:
        found = never_listed(tools, tool)
        if found is not None and found[1].state == "connecting":
            raise Retryable(f"MCP server {found[0]} is being connected")


def absent(program: str, tools: ToolServers) -> list[str]:
    """Why servers that a program names have told no tools since this process began."""
    away = {
        name: server.error or server.state
        for name, server in tools.status().items()
        if server.state != "ready" and not server.tools
    }
    return [f"MCP server {name} is not connected: {away[name]}" for name in named_in(program, away)]


def _coming(tools: ToolServers) -> list[str]:
    return [
        name
        for name, server in tools.status().items()
        if not server.announced and server.state != "failed"
    ]
