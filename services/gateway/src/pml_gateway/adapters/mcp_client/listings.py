"""Listings, checked item by item: the SDK refuses a whole listing for one malformed item."""

from collections.abc import Sequence
from typing import Any, Final, cast

from jsonschema import SchemaError
from jsonschema.validators import validator_for
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, Result
from mcp_types.methods import parse_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue, ValidationError

from pml_common.contracts.fault_words import field_of, words_of
from pml_common.contracts.tool import JsonObject

SET_ASIDE: Final = "pml/set-aside"
"""Key in `_meta` of a listing: the malformed items that were taken out of it, and why."""

_METHODS: Final = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}
"""The listing that has a list under a name; no other result of the protocol has one."""

_KINDS: Final = {
    "tools": "tool",
    "resources": "resource",
    "resourceTemplates": "resource template",
    "prompts": "prompt",
}


def with_usable_items(received: SessionMessage, version: str) -> SessionMessage:
    """Return a listing without its malformed items, by the rules of this version of the protocol,
    and every other message as it is."""
    message = received.message
    if not isinstance(message, JSONRPCResponse):
        return received
    answer: JsonObject = message.result
    kind = next((kind for kind in _METHODS if isinstance(answer.get(kind), list)), None)
    items, meta = answer.get(kind or ""), answer.get("_meta") or {}
    if kind is None or not isinstance(items, list) or not isinstance(meta, dict):
        return received
    kept: list[JsonValue] = []
    aside: list[JsonValue] = []
    for number, item in enumerate(items, 1):
        fault = _fault(kind, item, version)
        if fault is None:
            kept.append(item)
        else:
            aside.append(f"{_name_of(item, _KINDS[kind], number)}: set aside, {fault}")
    result: JsonObject = {**answer, kind: kept, "_meta": {**meta, SET_ASIDE: aside}}
    message = message.model_copy(update={"result": result})
    return SessionMessage(message, received.metadata)


def set_aside_of(listing: Result) -> Sequence[str]:
    """Return the malformed items that were taken out of a listing, each with the reason."""
    return cast(Sequence[str], (listing.meta or {}).get(SET_ASIDE, ()))


def _fault(kind: str, item: JsonValue, version: str) -> str | None:
    """Return why the SDK would refuse or drop an item, or fail every call of a tool."""
    listing = {kind: [item], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    try:
        parse_server_result(_METHODS[kind], version, listing)
    except ValidationError as error:
        fault = error.errors()[0]
        field = field_of(fault["loc"][2:])
        words = words_of({**fault})
        return f"{field}: {words}" if field else words
    return _fault_of_tool(cast(JsonObject, item), version) if kind == "tools" else None


def _fault_of_tool(definition: JsonObject, version: str) -> str | None:
    if version in MODERN_PROTOCOL_VERSIONS:
        header = find_invalid_x_mcp_header(definition["inputSchema"])
        if header is not None:
            return header
    if definition.get("outputSchema") is None:
        return None
    output = cast(dict[str, Any], definition["outputSchema"])
    try:
        validator_for(output).check_schema(output)
    except SchemaError as error:
        return f"outputSchema is not a JSON Schema: {error.message}"
    return None


def _name_of(item: JsonValue, kind: str, number: int) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) and name else f"{kind} {number} of the listing"
