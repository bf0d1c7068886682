"""JSON Schemas of values, derived from their uses.

Contradictory uses make no type rather than a wrong one; an `enum` appears only where every other
value fails, in the program or in the tool that gets the value.
"""

from typing import Final

from pydantic import JsonValue

from pml_analysis.parameters.shapes import Shape, ToolField, is_among
from pml_common.contracts.tool import JsonObject
from pml_common.provides.json_schema import Described, described

_AGREED: Final = ("type", "description", "enum", "format")
"""Keywords copied from tools' schemas, where they agree."""

_OF_THE_TOOL: Final = frozenset({"$defs", "$schema", "default", "definitions", "examples", "title"})
"""Keywords that describe the tool's field, not its values."""


def schema_of(shape: Shape) -> JsonObject:
    """Build the schema of one value."""
    found = _tool_constraints(shape.tool_fields)
    types = types_of(shape)
    known = described(found).types
    if known and not types <= known:
        found = {key: value for key, value in found.items() if key == "description"}
    elif len(types) == 1:
        found = {**_typed(next(iter(types)), shape), **found}
    allowed = found.pop("enum", shape.allowed)
    met = [*shape.defaults, *shape.compared]
    if isinstance(allowed, list) and all(is_among(value, allowed) for value in met):
        found["enum"] = allowed
    elif shape.compared and len(types) == 1:
        found["examples"] = shape.compared
    if len(shape.defaults) == 1:
        found["default"] = shape.defaults[0]
    return found


def types_of(shape: Shape) -> set[str]:
    """Return the types that uses require: one, or several that contradict each other."""
    if shape.is_asked:
        return set()
    certain = set(shape.certain)
    if shape.fields:
        certain.add("object")
    if shape.items is not None and (shape.indexed or "array" in shape.likely):
        certain |= {"array"} if types_of(shape.items) - {"string"} else set()
    return certain or shape.likely


def object_schema(shape: Shape) -> JsonObject:
    """Build the schema of an object from the fields that are met, in their order."""
    ordered = sorted(shape.fields.items(), key=lambda item: item[1].offset)
    properties: JsonObject = {name: schema_of(inner) for name, inner in ordered}
    required: list[JsonValue] = [name for name, inner in ordered if inner.required]
    return {"type": "object", "properties": properties, "required": required}


def _typed(name: str, shape: Shape) -> JsonObject:
    if name == "object" and shape.fields:
        whole = object_schema(shape)
        return {key: value for key, value in whole.items() if value}
    items = schema_of(shape.items) if name == "array" and shape.items is not None else {}
    return {"type": name, "items": items} if items else {"type": name}


def _tool_constraints(fields: list[ToolField]) -> JsonObject:
    """Return the constraints of tools on the value, as far as they agree."""
    said = [_portable(one.value) for one in fields]
    if not said or all(schema == said[0] for schema in said):
        return dict(said[0]) if said else {}
    found: JsonObject = {}
    for key in _AGREED:
        values = [schema[key] for schema in said if key in schema]
        if values and all(value == values[0] for value in values):
            found[key] = values[0]
    return found if "type" in found else {k: found[k] for k in found if k == "description"}


def _portable(value: Described) -> JsonObject:
    """Return a schema without references into its document."""
    schema = value.schema
    if not _refers(schema):
        return {key: said for key, said in schema.items() if key not in _OF_THE_TOOL}
    found = {key: schema[key] for key in _AGREED if key in schema}
    return {"type": next(iter(value.types)), **found} if len(value.types) == 1 else found


def _refers(schema: JsonValue) -> bool:
    if isinstance(schema, dict):
        return "$ref" in schema or any(map(_refers, schema.values()))
    return isinstance(schema, list) and any(map(_refers, schema))
