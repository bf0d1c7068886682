"""An MCP server that logs every call with its exact arguments before it answers: one JSON line per
call.

`python recording_server.py FILE`. It validates and converts nothing, so the log has the arguments
as received. The tools' results depend on their arguments only.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import MCPError, stdio_server
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

Context = ServerRequestContext[Any, Any]
Args = dict[str, Any]

CALLS = Path(sys.argv[1])
JSON_CONTENT = '{"path": "/evil", "list": ["/evil/1"], "__proto__": {"path": "/evil"}}'


def _done(args: Args) -> Args:
    return {"done": True, "given": args}


def _read(args: Args) -> Args:
    path = str(args.get("path"))
    if path.endswith(".json"):
        content = (
            '{"path": "/evil", "list": ["/evil/1", "/evil/2"], "__proto__": {"path": "/evil"}}'
        )
    else:
        content = f"content of {path}"
    return {
        "path": path,
        "content": content,
        "size": len(content),
        "lines": [f"{path}:{line}" for line in (1, 2, 3)],
        "meta": {"owner": {"name": f"owner of {path}"}, "next": f"{path}/next"},
    }


def _list(args: Args) -> Args:
    path = str(args.get("path"))
    files = [
        {"path": f"{path}/{name}", "name": name, "tags": [f"{name}1", f"{name}2"]}
        for name in ("a", "b", "c")
    ]
    return {"path": path, "files": files, "names": ["a", "b", "c"], "count": len(files)}


def _give(args: Args) -> Args:
    return {"value": args.get("value")}


TOOLS: Final[dict[str, tuple[tuple[str, ...], Callable[[Args], Args]]]] = {
    "write": (("path", "content"), _done),
    "send": (("to", "body"), _done),
    "erase": (("path",), _done),
    "query": (("about", "limit"), _give),
    "read": (("path",), _read),
    "list": (("path",), _list),
    "give": (("value",), _give),
    "fail": (("why",), _done),
}
CHANGING: Final = ("write", "send", "erase")


def _write_down(line: Args) -> None:
    with CALLS.open("a", encoding="utf-8") as calls:
        calls.write(json.dumps(line) + "\n")


async def list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    """Declare that every tool accepts its own arguments of any type, and any others."""
    return ListToolsResult(
        tools=[
            Tool(
                name=name,
                description=f"Records that it should {name}.",
                input_schema={"type": "object", "properties": {one: {} for one in takes}},
                annotations=ToolAnnotations(read_only_hint=name not in CHANGING),
            )
            for name, (takes, _) in TOOLS.items()
        ]
    )


async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Log the call, then answer."""
    args: Args = params.arguments or {}
    known = TOOLS.get(params.name)
    if known is None:
        raise MCPError(METHOD_NOT_FOUND, f"no tool {params.name}")
    result = known[1](args)
    _write_down({"tool": params.name, "args": args, "result": result})
    if params.name == "fail":
        return CallToolResult(content=[TextContent(text=str(args.get("why")))], is_error=True)
    return CallToolResult(content=[], structured_content=result)


async def main() -> None:
    """Serve over stdio."""
    server = Server("recording", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
