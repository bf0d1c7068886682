"""The configuration of an MCP server whose tools and results no SDK would make."""

import json
import sys
from pathlib import Path

from pydantic import JsonValue

from services.gateway.tests.integration.mcp.harness import RAW_PROGRAM

IMAGE = "aGk=" * 200
_ANY: JsonValue = {"type": "object"}
_NO_MEMBERS = ("then", "toJSON", "toString", "constructor")
_CAT: JsonValue = [
    {"type": "text", "text": "a cat"},
    {"type": "image", "data": IMAGE, "mimeType": "image/png"},
]
_RESULTS: dict[str, JsonValue] = {
    "text": {"content": [{"type": "text", "text": "fine"}]},
    "shot": {"content": _CAT, "structuredContent": {"id": 2**60 + 1}},
    "empty": {"content": []},
    "fails": {
        "content": [{"type": "text", "text": "no such page"}],
        "structuredContent": {"code": 404},
        "isError": True,
    },
    "get-sum": {"content": [{"type": "text", "text": "three"}]},
    "broken": {"content": [{"type": "text", "text": "\ud800"}]},
    **{name: {"content": [{"type": "text", "text": name}]} for name in _NO_MEMBERS},
}


def odd_server(folder: Path) -> JsonValue:
    """Return the entry of a server whose definition is written to this folder."""
    hints: JsonValue = {"readOnlyHint": True}
    tools: list[JsonValue] = [
        {"name": name, "inputSchema": _ANY, "annotations": hints} for name in _RESULTS
    ]
    lines = {
        name: [f'{{"jsonrpc":"2.0","id":$ID,"result":{json.dumps(result)}}}']
        for name, result in _RESULTS.items()
    }
    told = folder / "odd.json"
    definition = {"version": "2025-11-25", "tools": [*tools, {"name": "bare"}], "lines": lines}
    told.write_text(json.dumps(definition), encoding="utf-8")
    return {
        "command": sys.executable,
        "args": [str(RAW_PROGRAM), str(told)],
        "trust": "hints",
        "timeout": 30,
    }
