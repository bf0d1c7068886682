"""Descriptions of values by JSON Schemas."""

import pytest
from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject
from pml_common.provides.coverage import compute_coverage
from pml_common.provides.json_schema import described

STRING: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "number"}


def needs(**required: JsonValue) -> JsonObject:
    """Return the schema of an object with these fields, all required."""
    return {"type": "object", "properties": required, "required": list(required)}


OPTIONAL_TEXT: JsonObject = {"anyOf": [STRING, {"type": "null"}]}
KINDS: dict[str, tuple[JsonObject, JsonObject, bool]] = {
    "unsaid": ({}, STRING, True),
    "integers are numbers": ({"type": "integer"}, NUMBER, True),
    "several types": ({"type": ["number", "null"]}, STRING, False),
    "one of several types": ({"type": ["number", "string"]}, STRING, True),
    "alternatives": (OPTIONAL_TEXT, STRING, True),
    "no alternative": (OPTIONAL_TEXT, NUMBER, False),
    "an alternative that says nothing": ({"oneOf": [STRING, {}]}, NUMBER, True),
    "all at once": ({"allOf": [{}, STRING]}, NUMBER, False),
    "values": ({"enum": ["a", None]}, NUMBER, False),
    "one value": ({"const": 1.5}, NUMBER, True),
    "only null": ({"const": None}, NUMBER, True),
    "by its fields": ({"properties": {}}, STRING, False),
    "by its elements": ({"items": NUMBER}, STRING, False),
    "an odd type": ({"type": 3}, STRING, True),
    "a reference": ({"$ref": "#/$defs/Text"}, NUMBER, False),
    "a reference to nothing": ({"$ref": "#/$defs/None"}, NUMBER, True),
    "a reference elsewhere": ({"$ref": "other.json#/a"}, NUMBER, True),
    "a reference to itself": ({"$ref": "#/$defs/Loop"}, NUMBER, True),
    "alternatives that are themselves": ({"$ref": "#/$defs/Tree"}, NUMBER, True),
    "an escaped reference": ({"$ref": "#/$defs/a~1b~0c"}, NUMBER, False),
}
TREES: list[JsonValue] = [{"$ref": "#/$defs/Tree"}] * 8
DEFINITIONS: JsonObject = {
    "Text": STRING,
    "Loop": {"$ref": "#/$defs/Loop"},
    "Tree": {"anyOf": TREES},
    "a/b~c": STRING,
}


@pytest.mark.parametrize(("output", "wanted", "compatible"), KINDS.values(), ids=KINDS)
def test_types_are_found_in_every_part_of_a_schema(
    output: JsonObject, wanted: JsonObject, compatible: bool
) -> None:
    outputs: JsonObject = {"properties": {"x": output}, "$defs": DEFINITIONS}
    (mapping,) = compute_coverage(outputs, needs(x=wanted)).field_mapping
    assert mapping.type_compatible is compatible


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_fields_and_elements_of_all_parts_are_found(keyword: str) -> None:
    parts: list[JsonValue] = [{"type": "array", "items": needs(url=STRING)}, {"type": "array"}]
    outputs: JsonObject = {"properties": {"links": {keyword: parts}, "odd": 1, "file": {}}}
    (mapping,) = compute_coverage(outputs, needs(url=STRING)).field_mapping
    assert mapping.from_field == "links[].url"
    merged: JsonObject = {keyword: [needs(path=STRING), 3]}
    assert compute_coverage(merged, needs(path=STRING)).coverage == "strict"


def test_fields_required_by_parts_are_required() -> None:
    inputs: JsonObject = {"allOf": [needs(a=STRING)], "properties": {"b": {}}, "required": ["b"]}
    assert compute_coverage(needs(a=STRING), inputs).coverage == "partial"
    assert compute_coverage(needs(a=STRING, b=STRING), inputs).coverage == "strict"


def test_a_part_is_found_along_its_path() -> None:
    links = needs(results={"type": "array", "items": needs(url=STRING, score=NUMBER)})
    assert described(links).at(("results", 0, "url")).types == {"string"}
    assert described(links).at(("results", None, "score")).types == {"number"}
    assert described(links).at(("nothing", "there")).types == frozenset()
    assert described(None).at(()).types == frozenset()
