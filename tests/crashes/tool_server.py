"""An MCP server that logs every call before it does anything: one JSON line per call.

`python tool_server.py FILE [NAME [PORT]]`: over stdio, or over HTTP on a loopback port; NAME is the
server's name, by default `tally`.
"""

# waits on purpose: slow tools are what it offers

import asyncio
import json
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

CALLS = Path(sys.argv[1])
NAME = sys.argv[2] if len(sys.argv) > 2 else "tally"
CHANGES = ToolAnnotations(read_only_hint=False)
SETS = ToolAnnotations(read_only_hint=False, idempotent_hint=True)
READS = ToolAnnotations(read_only_hint=True)
server = MCPServer(NAME)


def _write_down(tool: str, args: dict[str, object]) -> None:
    given = {name: value for name, value in args.items() if value is not None}
    with CALLS.open("a", encoding="utf-8") as calls:
        calls.write(json.dumps({"tool": f"{NAME}:{tool}", "args": given}) + "\n")


async def _count(tool: str, args: dict[str, object], wait: int | None) -> dict[str, object]:
    _write_down(tool, args | {"wait": wait})
    await asyncio.sleep((wait or 0) / 1000)
    return {name: value for name, value in args.items() if name != "run"}


@server.tool(annotations=CHANGES)
async def mark(
    run: str, n: int, drawn: int | float | str | None = None, wait: int | None = None
) -> dict[str, object]:
    """Changes something; nobody may call it again."""
    return await _count("mark", {"run": run, "n": n, "drawn": drawn}, wait)


@server.tool(annotations=CHANGES)
async def pay(
    run: str, n: int, drawn: int | float | str | None = None, wait: int | None = None
) -> dict[str, object]:
    """Changes something that a person must agree to."""
    return await _count("pay", {"run": run, "n": n, "drawn": drawn}, wait)


@server.tool(annotations=SETS)
async def put(run: str, n: int, wait: int | None = None) -> dict[str, object]:
    """Changes something; called again, it changes nothing more."""
    return await _count("put", {"run": run, "n": n}, wait)


@server.tool(annotations=READS)
async def look(
    run: str, n: int, drawn: int | float | str | None = None, wait: int | None = None
) -> dict[str, object]:
    """Changes nothing; it may be called again."""
    return await _count("look", {"run": run, "n": n, "drawn": drawn}, wait)


@server.tool(annotations=CHANGES)
async def refuse(run: str, n: int, wait: int | None = None) -> dict[str, object]:
    """Fails, having changed something."""
    await _count("refuse", {"run": run, "n": n}, wait)
    raise ToolError(f"number {n} is refused")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        server.run("streamable-http", port=int(sys.argv[3]))
    else:
        server.run("stdio")
