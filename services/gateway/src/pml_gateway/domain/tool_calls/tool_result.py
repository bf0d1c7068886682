"""Converts between MCP's results (`CallToolResult`, as JSON) and the values of programs."""

import json

from pydantic import JsonValue

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject

_BLOCK_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link"})


def outcome_of(result: JsonObject) -> ToolOutcome:
    """Return the outcome in a `CallToolResult`.

    Its value is `structuredContent` if present, else the text of a single text block, else the list
    of content blocks.
    """
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    if result.get("isError") is True:
        return ToolOutcome(status="tool_error", message=_error_text(blocks))
    structured = result.get("structuredContent")
    if structured is not None:
        return ToolOutcome(status="ok", result=structured)
    texts = _texts(blocks)
    if len(blocks) == 1 and len(texts) == 1:
        return ToolOutcome(status="ok", result=texts[0])
    return ToolOutcome(status="ok", result=blocks)


def result_of(value: JsonValue, *, structured: bool) -> JsonObject:
    """Build the `CallToolResult` of a program's value: the inverse of `outcome_of`.

    With `structured`, an object goes into `structuredContent` too; every other value is text alone,
    because the older revisions allow nothing but an object there.
    """
    result: JsonObject = {"content": _content(value), "isError": False}
    if structured and isinstance(value, dict):
        result["structuredContent"] = value
    return result


def error_result(message: str, detail: JsonObject | None = None) -> JsonObject:
    """Build the `CallToolResult` of a failed call."""
    result: JsonObject = {"content": [_text(message)], "isError": True}
    if detail is not None:
        result["structuredContent"] = detail
    return result


def _content(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, str):
        return [_text(value)]
    if isinstance(value, list) and value and all(_is_block(item) for item in value):
        return value
    return [_text(json.dumps(value, ensure_ascii=False))]


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _is_block(item: JsonValue) -> bool:
    return isinstance(item, dict) and item.get("type") in _BLOCK_TYPES


def _texts(blocks: list[JsonValue]) -> list[str]:
    found = [block.get("text") for block in blocks if isinstance(block, dict)]
    return [text for text in found if isinstance(text, str)]


def _error_text(blocks: list[JsonValue]) -> str:
    return "\n".join(_texts(blocks)) or "the tool reported an error and gave no message"
