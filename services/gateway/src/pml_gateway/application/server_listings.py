"""Waits for MCP servers that have not listed their tools since this process began."""

import asyncio
from collections.abc import Collection, Mapping, Set
from datetime import datetime
from typing import Final

from pml_common.bus.errors import Retryable
from pml_gateway.domain.api.api import ExecuteRequest, program_of
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.mcp_names import may_be_of
from pml_gateway.domain.servers.named_servers import named_in
from pml_gateway.ports import ServerStatus, ToolServers

MAX_WAIT_S: Final = 30.0
"""Before a program is analysed, or a tool is reported as unknown."""

_LISTED_WITHIN_S: Final = 5.0
_POLL_EVERY_S: Final = 0.05


async def wait_until_announced(
    request: ExecuteRequest, tools: ToolServers, within_s: float
) -> None:
    """Wait until the tool catalog has the tools of the servers that a request's program names, or
    these servers have failed; `within_s` at most."""
    if not _unannounced(tools):
        return
    try:
        program = program_of(request) or ""
    except InvalidRequest:
        return  # it is not accepted either
    named = set(named_in(program, _unannounced(tools)))
    clock = asyncio.get_running_loop().time
    deadline = clock() + min(within_s, MAX_WAIT_S)
    while named & set(_unannounced(tools)) and clock() < deadline:  # noqa: ASYNC110 - has no event
        await asyncio.sleep(_POLL_EVERY_S)


async def wait_until_listed(tool: str, tools: ToolServers, within_s: float) -> bool:
    """Wait until servers that a tool of this name may belong to, and that never listed their tools,
    have listed them or failed, `within_s` at most; return whether there are such servers."""
    unlisted = [
        name
        for name, server in tools.status().items()
        if server.state != "ready"
        and not server.tools
        and (may_be_of(tool, name) or not server.prefixed)
    ]
    await asyncio.gather(*(tools.reach(name, min(within_s, MAX_WAIT_S)) for name in unlisted))
    return bool(unlisted)


async def wait_for_listings(named: Collection[str], tools: ToolServers) -> None:
    """Wait, five seconds at most, for the servers of these tools that never listed their tools:
    decisions and grants are made on the listed definitions."""
    servers = {tool.partition(":")[0] for tool in named if never_listed(tools, tool)}
    await asyncio.gather(*(tools.reach(server, _LISTED_WITHIN_S) for server in servers))


async def require_listings(named: Collection[str], tools: ToolServers) -> None:
    """Wait like `wait_for_listings`. Raises Retryable while a server is still being connected for
    the first time."""
    await wait_for_listings(named, tools)
    for tool in named:
        found = never_listed(tools, tool)
        if found is not None and found[1].state == "connecting":
            raise Retryable(f"MCP server {found[0]} is being connected")


def never_listed(tools: ToolServers, tool_id: str) -> tuple[str, ServerStatus] | None:
    """Return the server of this tool, by name, if it never listed its tools because it is not
    connected."""
    name = tool_id.partition(":")[0]
    server = tools.status().get(name)
    if server is None or server.state == "ready" or server.tools:
        return None
    return name, server


def absent_servers(program: str, tools: ToolServers, now: datetime) -> Mapping[str, str]:
    """Explain, for each server that a program names and that has listed no tools, why."""
    absent = {name: server for name, server in tools.status().items() if not server.tools}
    return {name: why_absent(name, absent[name], now) for name in named_in(program, absent)}


def absent_server_of(tool: str, tools: ToolServers, now: datetime) -> str | None:
    """Explain why the server that a tool of this name may belong to has listed no tools; None
    where there is no such server. Any may belong to one whose tools have their own names, while
    it is not connected."""
    known = tools.status()
    absent = [name for name, server in known.items() if not server.tools]
    for name in absent:
        if may_be_of(tool, name):
            return why_absent(name, known[name], now)
    for name in absent:
        if not known[name].prefixed and known[name].state != "ready":
            return why_absent(name, known[name], now)
    return None


def bare_servers(tools: ToolServers) -> Set[str]:
    """Return the servers whose tools are listed under their own names."""
    return {name for name, server in tools.status().items() if not server.prefixed}


def why_absent(name: str, server: ServerStatus, now: datetime) -> str:
    """Explain why a configured server has listed no tools, and what to do."""
    seconds = max(0.0, (now - server.since).total_seconds())
    match server.state:
        case "connecting":
            before = f" after: {server.error}" if server.error else ""
            return (
                f"MCP server {name} is configured and still connecting, for {seconds:.0f} s"
                f"{before}. Its tools are not known yet; try again in a moment"
            )
        case "failed":
            return (
                f"MCP server {name} is configured, but failed: {server.error}. The gateway keeps "
                "trying; check that it runs and that its entry is right, then try again"
            )
        case "ready":
            left_out = f": {'; '.join(server.warnings)}" if server.warnings else ""
            return f"MCP server {name} is connected, but lists no tool that can be used{left_out}"


def _unannounced(tools: ToolServers) -> list[str]:
    return [
        name
        for name, server in tools.status().items()
        if not server.announced and server.state != "failed"
    ]
