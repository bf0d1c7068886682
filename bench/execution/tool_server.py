"""An MCP server over stdio for benchmarks: a tool that only reads, one that may not be repeated,
and one with a large result."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("bench")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def read(i: int) -> dict[str, int]:
    """Returns its argument."""
    return {"i": i}


@server.tool(annotations=ToolAnnotations(read_only_hint=False, idempotent_hint=False))
async def change(i: int) -> dict[str, int]:
    """Returns its argument; says that it changes something."""
    return {"i": i}


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def page(size: int) -> dict[str, str]:
    """Returns a text of a size."""
    return {"text": "x" * size}


if __name__ == "__main__":
    server.run("stdio")
