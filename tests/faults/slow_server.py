"""An MCP server that starts serving once a file exists: `slow_server.py FOLDER`.

`mark` writes a line into `FOLDER/marks`; while `FOLDER/hold` exists it waits inside the call.
"""

# waits on purpose: it is held until a test releases it

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

FOLDER = Path(sys.argv[1])
WITHIN_S = 600.0
POLL_S = 0.01
server = MCPServer("slow")


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            if condition():
                return
            await asyncio.sleep(POLL_S)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def mark(n: int) -> int:
    """Append to the marks."""
    with (FOLDER / "marks").open("a", encoding="utf-8") as marks:
        marks.write(f"{n}\n")
    await _until(lambda: not (FOLDER / "hold").exists())
    return n


if __name__ == "__main__":
    asyncio.run(_until((FOLDER / "open").exists))
    server.run("stdio")
