"""Listings of tools, checked one by one: the SDK refuses a listing for one malformed tool."""

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

from pml_common.contracts.tool import JsonObject

SET_ASIDE: Final = "pml/set-aside"
"""Key in `_meta` of a listing: the malformed tools that were taken out of it, and why."""


def with_usable_tools(received: SessionMessage, version: str) -> SessionMessage:
    """Return a response to `tools/list` without its malformed tools, by the rules of this version
    of the protocol, and every other message as it is."""
    message = received.message
    if not isinstance(message, JSONRPCResponse):
        return received
    answer: JsonObject = message.result
    tools, meta = answer.get("tools"), answer.get("_meta") or {}
    # No other result of the protocol has a list under this name.
    if not isinstance(tools, list) or not isinstance(meta, dict):
        return received
    kept: list[JsonValue] = []
    aside: list[JsonValue] = []
    for number, tool in enumerate(tools, 1):
        fault = _fault(tool, version)
        if fault is None:
            kept.append(tool)
        else:
            aside.append(f"{_name_of(tool, number)}: set aside, {fault}")
    result: JsonObject = {**answer, "tools": kept, "_meta": {**meta, SET_ASIDE: aside}}
    message = message.model_copy(update={"result": result})
    return SessionMessage(message, received.metadata)


def set_aside_of(listing: Result) -> Sequence[str]:
    """Return the malformed tools that were taken out of a listing, each with the reason."""
    return cast(Sequence[str], (listing.meta or {}).get(SET_ASIDE, ()))


def _fault(tool: JsonValue, version: str) -> str | None:
    """Return why the SDK would refuse or drop a tool, or fail every call of it."""
    listing = {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    try:
        parse_server_result("tools/list", version, listing)
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(str(part) for part in fault["loc"][2:])
        return f"{field}: {fault['msg']}" if field else fault["msg"]
    definition = cast(JsonObject, tool)
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


def _name_of(tool: JsonValue, number: int) -> str:
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) and name else f"tool {number} of the listing"
