"""The demo's tool server: notes in one folder, over MCP.

`python notes.py FOLDER` for Streamable HTTP at port 8000, `python notes.py FOLDER stdio` for stdio.
A change is stored before its call is answered.
`append_line` called twice leaves two lines, so a note shows how often it was called.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import Field

FOLDER = Path(sys.argv[1])
READS = ToolAnnotations(read_only_hint=True)
SETS = ToolAnnotations(read_only_hint=False, idempotent_hint=True)
CHANGES = ToolAnnotations(read_only_hint=False, idempotent_hint=False)
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
server = MCPServer("notes")


@server.tool(annotations=READS)
async def list_notes() -> list[str]:
    """Names of all notes."""
    return await asyncio.to_thread(_names)


@server.tool(annotations=READS)
async def read_note(name: Name) -> str:
    """Text of a note; empty if it does not exist."""
    return await asyncio.to_thread(_text, name)


@server.tool(annotations=SETS)
async def write_note(name: Name, text: str) -> str:
    """Writes a note, in place of the one that had its name."""
    await asyncio.to_thread(_store, name, text, os.O_TRUNC)
    return name


@server.tool(annotations=CHANGES)
async def append_line(
    name: Name, line: str, wait_ms: Annotated[int, Field(ge=0, le=10_000)] = 0
) -> str:
    """Adds a line to a note, then waits; called again, it adds another."""
    await asyncio.to_thread(_store, name, f"{line}\n", os.O_APPEND)
    await asyncio.sleep(wait_ms / 1000)
    return line


def _names() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.md"))


def _text(name: str) -> str:
    file = FOLDER / f"{name}.md"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _store(name: str, text: str, how: int) -> None:
    file = os.open(FOLDER / f"{name}.md", os.O_WRONLY | os.O_CREAT | how, 0o644)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


if __name__ == "__main__":
    if sys.argv[2:] == ["stdio"]:
        server.run("stdio")
    else:
        allowed = TransportSecuritySettings(allowed_hosts=["notes:8000"])
        server.run("streamable-http", host="0.0.0.0", port=8000, transport_security=allowed)  # noqa: S104
