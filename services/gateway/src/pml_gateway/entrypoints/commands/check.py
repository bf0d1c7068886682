"""Check of an `mcpServers` file: each entry with its faults and, connected, its tools."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.servers_file import read_file
from pml_gateway.domain.servers.server_config import StdioServer
from pml_gateway.domain.servers.servers_file import ServerEntry, ServersInvalid

_CONNECT_S: Final = 120.0
"""Longer than in the gateway: a first start downloads its program."""


async def check(file: Path, environment: Mapping[str, str], *, connect: bool) -> JsonObject:
    """Return a report: `{"file", "fault"}`, or `{"file", "entries"}`."""
    try:
        entries = await asyncio.to_thread(read_file, file, environment)
    except ServersInvalid as error:
        return {"file": str(file), "fault": str(error)}
    reports = {entry.name: _report(entry) for entry in entries}
    if connect:
        for name, found in (await _connected(entries, environment)).items():
            reports[name].update(found)
    # A disabled entry may have the name of another.
    off = [_report(entry) for entry in entries if entry.disabled]
    shown = [one for one in reports.values() if not one["disabled"]]
    return {"file": str(file), "entries": [*shown, *off]}


def _report(entry: ServerEntry) -> JsonObject:
    server = entry.server
    return {
        "name": entry.name,
        "title": entry.title,
        "transport": None if server is None else server.type,
        "target": None if server is None else _target(server),
        "disabled": entry.disabled,
        "faults": list(entry.faults),
        "notes": list(entry.notes),
    }


def _target(server: object) -> str:
    """Return the command or the URL; arguments and queries may hold secrets."""
    if isinstance(server, StdioServer):
        return server.command
    return str(getattr(server, "url", "")).partition("?")[0]


async def _connected(
    entries: tuple[ServerEntry, ...], environment: Mapping[str, str]
) -> dict[str, JsonObject]:
    """Connect to the servers, and return what they are then, by name."""
    # Imported here: the MCP SDK takes seconds, and most checks connect to nothing.
    from pml_gateway.adapters.mcp_client.server_pool import Limits, ServerPool

    pool = ServerPool(environment=environment, limits=Limits(connect_timeout_s=_CONNECT_S))
    await pool.apply([entry for entry in entries if entry.server is not None])
    await pool.start()
    try:
        await pool.settled(_CONNECT_S + 10.0)
        tools = pool.list_tools()
        return {
            name: {
                "state": status.state,
                "error": status.error,
                "tools": status.tools,
                "excluded": status.excluded,
                "warnings": list(status.warnings),
                "names": [tool.name for tool in tools[name]],
            }
            for name, status in pool.status().items()
        }
    finally:
        await pool.close()
