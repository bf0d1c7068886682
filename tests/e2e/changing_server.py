"""An MCP server whose tool changes between its processes: `python changing_server.py FOLDER`.

`greet` has the description that `FOLDER/description` holds when the server starts, and no output
schema; `leave` ends the process.
"""

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

told = Path(sys.argv[1]) / "description"
description = told.read_text(encoding="utf-8") if told.exists() else "Greet somebody."
server = MCPServer("changing")
READS = ToolAnnotations(read_only_hint=True)


@server.tool(description=description, annotations=READS, structured_output=False)
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


@server.tool(structured_output=False)
def leave() -> str:
    """End the process."""
    os._exit(3)


if __name__ == "__main__":
    server.run("stdio")
