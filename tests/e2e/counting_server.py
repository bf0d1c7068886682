"""An MCP server whose tools count themselves: one line per real call in a file it was given.

`python counting_server.py FOLDER`. `step` waits for `FOLDER/gate-<n>` if `FOLDER/hold-<n>` exists,
so that a test can stop the world in the middle of a call; cancelled there, it leaves
`FOLDER/cancelled-<n>`.
"""

import asyncio
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from pml_local.testing import eventually

FOLDER = Path(sys.argv[1])
PATIENCE_S = 60.0
server = MCPServer("counting")


@server.tool(annotations=ToolAnnotations(read_only_hint=False))
async def step(n: int) -> str:
    """Count one step; not repeatable: each call leaves a mark."""
    with (FOLDER / "steps.log").open("a", encoding="utf-8") as marks:
        marks.write(f"{n}\n")
    if (FOLDER / f"hold-{n}").exists():
        try:
            await eventually((FOLDER / f"gate-{n}").exists, within=PATIENCE_S)
        except asyncio.CancelledError:
            (FOLDER / f"cancelled-{n}").touch()
            raise
    return f"step {n} done"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def peek(path: str) -> dict[str, object]:
    """Say whether a file exists; changes nothing."""
    return {"path": path, "exists": Path(path).exists()}


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def fail(why: str) -> str:
    """Fail with the given reason."""
    raise ToolError(why)


if __name__ == "__main__":
    server.run("stdio")
