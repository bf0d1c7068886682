"""An MCP server that serves once a file is there: `slow_server.py FOLDER`.

`mark` writes a line into `FOLDER/marks`; while `FOLDER/hold` is there it waits inside the call.
"""

import asyncio
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from pml_local.testing import eventually

FOLDER = Path(sys.argv[1])
WITHIN_S = 60.0
server = MCPServer("slow")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def mark(n: int) -> int:
    """Leave a mark."""
    with (FOLDER / "marks").open("a", encoding="utf-8") as marks:
        marks.write(f"{n}\n")
    await eventually(lambda: not (FOLDER / "hold").exists(), within=WITHIN_S)
    return n


if __name__ == "__main__":
    asyncio.run(eventually((FOLDER / "open").exists, within=WITHIN_S))
    server.run("stdio")
