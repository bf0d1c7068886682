"""JSON Schemas of the structured answers of PML's own MCP tools.

They hold for every answer, with errors and approvals. Kept shallow: a client validates by them, and
every agent that lists tools reads them.
"""

from typing import Final, cast, get_args

from pydantic import BaseModel, JsonValue

from pml_common.contracts.capability import Health
from pml_common.contracts.registry import DiscoveryPage
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.mcp_results import in_camel_case

_SAID: Final[dict[str, str]] = {
    "result": "What the program returned.",
    "next": "How to get the result, where it is not there yet.",
    "suggestions": "Tools and capabilities for the intent, best first; nothing ran.",
    "hits": "Best first; `call` is a line of a program that calls it. Where `health` is failing, "
    "`last_good` refers to the version to call instead, if there is one.",
    "discovery_id": "Pass it to the pml_execute call that follows.",
    "speculation": "What was run for the intent, or why nothing was.",
}
_HIT: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "type": {"enum": ["tool", "capability"]},
        "id": {"type": "string"},
        "name": {"type": "string"},
        "score": {"type": "number"},
        "call": {"type": "string"},
        "signature": {"type": "string"},
        "health": {"enum": [*get_args(Health)]},
        "last_good": {"type": ["string", "null"]},
    },
    "required": ["type", "id", "name", "score", "call", "signature"],
}


def execute_output() -> JsonObject:
    """Return the schema of `pml_execute`."""
    return _shallow(ExecuteResponse, ["status"])


def discover_output() -> JsonObject:
    """Return the schema of `pml_discover`."""
    return _shallow(DiscoveryPage, ["hits", "total", "discovery_id"])


def _shallow(model: type[BaseModel], required: list[JsonValue]) -> JsonObject:
    """Describe a model's fields by their types alone, under their names over MCP."""
    whole = model.model_json_schema(mode="serialization")
    fields = cast("dict[str, JsonObject]", whole["properties"])
    shown: JsonObject = {name: _field(name, schema) for name, schema in fields.items()}
    return {"type": "object", "properties": in_camel_case(shown), "required": required}


def _field(name: str, schema: JsonObject) -> JsonObject:
    said: JsonObject = {"description": _SAID[name]} if name in _SAID else {}
    choices = schema.get("enum")
    if isinstance(choices, list):
        return {"enum": choices, **said}
    kinds = [_kind(each) for each in _alternatives(schema)]
    if None in kinds:
        return said
    found: JsonObject = {"type": kinds[0] if len(kinds) == 1 else cast(list[JsonValue], kinds)}
    if name in ("hits", "suggestions"):
        found["items"] = _HIT
    return found | said


def _alternatives(schema: JsonObject) -> list[JsonObject]:
    found = schema.get("anyOf")
    return cast("list[JsonObject]", found) if isinstance(found, list) else [schema]


def _kind(schema: JsonObject) -> str | None:
    """Return the JSON type of a schema; None for any. All that a field refers to are objects, but
    for JSON values."""
    if "$ref" in schema:
        return None if str(schema["$ref"]).endswith("/JsonValue") else "object"
    kind = schema.get("type")
    return str(kind) if kind is not None else None
