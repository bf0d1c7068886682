"""Shapes of JSON values: JSON Schemas that cover the values seen so far, and only widen.

A shape has `type`, and for objects `properties` and the names in all of them (`required`), for
arrays `items`; the empty shape covers anything. Merging is commutative, associative and idempotent,
so the order and the repetition of what was seen do not matter.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject

MOST_VALUES: Final = 500
"""Values in one result, and parts of one shape."""

MOST_MEMBERS: Final = 64
"""Names of one object; with more, its names are data."""

DEEPEST: Final = 8


def shape_of(value: JsonValue) -> JsonObject | None:
    """Return the shape of one value; None for a value that has more than MOST_VALUES parts."""
    budget = iter(range(MOST_VALUES))
    try:
        return _shape(value, 0, budget)
    except StopIteration:
        return None


def merged(one: JsonObject, other: JsonObject) -> JsonObject:
    """Return the shape that covers both; of more than MOST_VALUES parts, anything."""
    found = _merged(one, other)
    return found if sum(1 for _ in _parts(found)) <= MOST_VALUES else {}


def as_schema(shape: JsonObject) -> JsonObject:
    """Return what may be said of values to come: nothing where kinds were mixed, or all null."""
    kinds = _kinds(shape)
    if len(kinds - {"null"}) != 1:
        return {}
    schema = dict(shape)
    if isinstance(properties := shape.get("properties"), dict):
        schema["properties"] = {name: as_schema(_dict(known)) for name, known in properties.items()}
    if "items" in shape:
        schema["items"] = as_schema(_dict(shape["items"]))
    return schema


def _shape(value: JsonValue, depth: int, budget: Iterator[int]) -> JsonObject:
    next(budget)
    match value:
        case dict() | list() if depth >= DEEPEST:
            return {}
        case dict():
            inner = {name: _shape(each, depth + 1, budget) for name, each in value.items()}
            return {"type": "object", **_members(inner, set(inner))}
        case list():
            items: JsonObject | None = None
            for each in value:
                shape = _shape(each, depth + 1, budget)
                items = shape if items is None else _merged(items, shape)
            return {"type": "array"} if items is None else {"type": "array", "items": items}
        case _:
            return {"type": _kind(value)}


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case _:
            return "string"


def _merged(one: JsonObject, other: JsonObject) -> JsonObject:
    if not one or not other:
        return {}
    if one == other:
        return one
    kinds = _kinds(one) | _kinds(other)
    if "number" in kinds:
        kinds -= {"integer"}
    listed: list[JsonValue] = [*sorted(kinds)]
    shape: JsonObject = {"type": listed[0] if len(listed) == 1 else listed}
    return {**shape, **_merged_members(one, other), **_merged_items(one, other)}


def _merged_members(one: JsonObject, other: JsonObject) -> JsonObject:
    objects = [shape for shape in (one, other) if "object" in _kinds(shape)]
    if not objects or any("properties" not in shape for shape in objects):
        return {}
    properties: dict[str, JsonObject] = {}
    for shape in objects:
        for name, known in _dict(shape["properties"]).items():
            before = properties.get(name)
            properties[name] = _dict(known) if before is None else _merged(before, _dict(known))
    required = set(_list(objects[0]["required"])) & set(_list(objects[-1]["required"]))
    return _members(properties, required)


def _members(properties: dict[str, JsonObject], required: set[str]) -> JsonObject:
    if len(properties) > MOST_MEMBERS:
        return {}
    return {
        "properties": {name: properties[name] for name in sorted(properties)},
        "required": [*sorted(required)],
        "additionalProperties": True,
    }


def _merged_items(one: JsonObject, other: JsonObject) -> JsonObject:
    known = [_dict(shape["items"]) for shape in (one, other) if "items" in shape]
    if not known:
        return {}
    return {"items": known[0] if len(known) == 1 else _merged(*known)}


def _parts(shape: JsonObject) -> Iterator[JsonObject]:
    yield shape
    for known in _dict(shape.get("properties")).values():
        yield from _parts(_dict(known))
    if "items" in shape:
        yield from _parts(_dict(shape["items"]))


def _kinds(shape: JsonObject) -> set[str]:
    kinds = shape.get("type")
    return {kinds} if isinstance(kinds, str) else set(_list(kinds))


def _list(value: JsonValue) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _dict(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
