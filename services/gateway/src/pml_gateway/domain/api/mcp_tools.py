"""Conversion between MCP `Tool` JSON and tool definitions, in both directions."""

from collections import Counter
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Final

from pydantic import JsonValue, TypeAdapter, ValidationError

from pml_common.contracts.fault_words import faults_of
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition, ToolId
from pml_gateway.domain.servers.tool_meta import MetaKey, icons_of, meta_of

_TOOL_ID: TypeAdapter[str] = TypeAdapter(ToolId)
_HEADER_HINT = "x-mcp-header"
_UNUSABLE_NAME = "its name is empty, has white space, or is too long"


def definitions_of(
    server: str,
    tools: Sequence[JsonObject],
    *,
    trusted: bool,
    unstable: Collection[MetaKey] = (),
) -> tuple[tuple[ToolDefinition, ...], tuple[str, ...]]:
    """Return a server's usable tools in name order, and for each other name why it is left out.

    Tools that share a name are all left out, even if they are equal: only the server knows which of
    them a call would reach. The others stay usable, so that one mistake does not disable a server.
    Hints count only if the server is `trusted`.
    """
    usable: dict[str, ToolDefinition] = {}
    times = Counter(str(tool.get("name")) for tool in tools)
    faults = [
        f"{name}: listed {count} times, so none of them is used"
        for name, count in times.items()
        if count > 1
    ]
    for tool in tools:
        name = str(tool.get("name"))
        if times[name] > 1:
            continue
        if not _is_tool_id(f"{server}:{name}"):
            faults.append(f"{name}: set aside, {_UNUSABLE_NAME}")
            continue
        try:
            usable[name] = _definition(server, name, tool, trusted, unstable)
        except ValidationError as error:
            faults.append(f"{name}: set aside, {faults_of(error)[0]}")
    return tuple(usable[name] for name in sorted(usable)), tuple(faults)


TOOL_ID: Final = "pml/tool"
"""Key in `_meta` of a listed tool: its true id."""


def listing_of(tool: ToolDefinition, name: str, shown: JsonObject | None = None) -> JsonObject:
    """Build the MCP listing of a tool for our own clients: `name`, its own title, its true id as
    title where it has none and in `_meta`, and the rest of what its server has `shown` with it.

    The output schema is included if every revision of the protocol can carry it. Header hints are
    not: they concern the connection to the tool's own server.
    """
    shown = shown or {}
    meta = shown.get("_meta")
    listing: JsonObject = {
        **shown,
        "name": name,
        "title": tool.title or tool.tool_id,
        "_meta": {**(meta if isinstance(meta, dict) else {}), TOOL_ID: tool.tool_id},
        "description": tool.description or f"{tool.tool_id}, which its server does not describe",
        "inputSchema": _without_header_hints(tool.input_schema),
        "annotations": _hints(tool.title, tool.annotations),
    }
    if has_structured_result(tool):
        listing["outputSchema"] = tool.output_schema
    return listing


def has_structured_result(tool: ToolDefinition) -> bool:
    """Whether the tool returns `structuredContent` in every revision of the protocol."""
    return tool.output_schema is not None and tool.output_schema.get("type") == "object"


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a suggestion to append to an error message; empty if no known name is similar."""
    similar = get_close_matches(name, known, n=3)
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


def _definition(
    server: str, name: str, tool: JsonObject, trusted: bool, unstable: Collection[MetaKey]
) -> ToolDefinition:
    hints = tool.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    claimed = ToolAnnotations.model_validate(
        {
            "read_only": hints.get("readOnlyHint"),
            "destructive": hints.get("destructiveHint"),
            "idempotent": hints.get("idempotentHint"),
            "open_world": hints.get("openWorldHint"),
        }
    )
    unknown = ToolAnnotations()
    return ToolDefinition.model_validate(
        {
            "server": server,
            "name": name,
            "title": tool.get("title") or hints.get("title"),
            "description": tool.get("description") or "",
            "input_schema": tool.get("inputSchema"),
            "output_schema": tool.get("outputSchema"),
            "annotations": claimed if trusted else unknown,
            "claims": None if trusted or claimed == unknown else claimed,
            "meta": meta_of(tool, unstable),
            "icons": icons_of(tool),
        }
    )


def _is_tool_id(text: str) -> bool:
    try:
        _TOOL_ID.validate_python(text)
    except ValidationError:
        return False
    return True


def _hints(title: str | None, annotations: ToolAnnotations) -> JsonObject:
    hints: JsonObject = {
        "title": title,
        "readOnlyHint": annotations.read_only,
        "destructiveHint": annotations.destructive,
        "idempotentHint": annotations.idempotent,
        "openWorldHint": annotations.open_world,
    }
    return {name: hint for name, hint in hints.items() if hint is not None}


def _without_header_hints(schema: JsonObject) -> JsonObject:
    return {k: _stripped(v) for k, v in schema.items() if k != _HEADER_HINT}


def _stripped(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _without_header_hints(value)
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    return value
