"""An MCP server with nothing but two tools that return their arguments: the floor of a call over
MCP. `python echo_server.py PORT` serves Streamable HTTP on loopback, as the gateway does.
"""

import sys
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from uvicorn import run

Context = ServerRequestContext[Any, Any]


async def list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    """List the one tool."""
    return ListToolsResult(tools=[Tool(name="echo", input_schema={"type": "object"})])


async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Return the arguments."""
    said = params.arguments or {}
    text = TextContent(type="text", text=str(said))
    return CallToolResult(content=[text], structured_content=said)


if __name__ == "__main__":
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(stateless_http=True)
    run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
