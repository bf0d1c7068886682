"""JSON Schemas, and their TypeScript types."""

import pytest
from pydantic import JsonValue

from pml_analysis.typing.json_schema_types import SchemaTypes
from services.analyzer.tests.support.schemas import HOSTILE_SCHEMAS

TEXT: JsonValue = {"type": "string"}
NUMBER: JsonValue = {"type": "number"}

PLAIN: dict[str, tuple[JsonValue, str]] = {
    "a text": (TEXT, "string"),
    "an integer": ({"type": "integer"}, "number"),
    "a boolean": ({"type": "boolean"}, "boolean"),
    "nothing": ({"type": "null"}, "null"),
    "one of several types": ({"type": ["integer", "null"]}, "number | null"),
    "nullable": ({"type": "string", "nullable": True}, "string | null"),
    "not nullable": ({"type": "string", "nullable": False}, "string"),
    "an enum": ({"type": "string", "enum": ["a", 'b"']}, r'"a" | "b\""'),
    "an enum of plain values": ({"enum": [1, -1.5, True, None]}, "1 | -1.5 | true | null"),
    "an enum with a list": ({"enum": ["a", []]}, "unknown"),
    "a number that is none exactly": ({"enum": [2**53, 10**400]}, "number"),
    "a constant": ({"const": "a"}, '"a"'),
    "either": ({"anyOf": [TEXT, NUMBER, TEXT]}, "string | number"),
    "one of": ({"oneOf": [TEXT, {"type": "null"}]}, "string | null"),
    "either of nothing": ({"anyOf": [False, TEXT]}, "string"),
    "never": ({"anyOf": [False]}, "never"),
    "all": ({"allOf": [TEXT, {"enum": ["a", "b"]}]}, '(string & ("a" | "b"))'),
    "all of one": ({"allOf": [TEXT, {"pattern": "^a"}]}, "string"),
    "either and something": (
        {"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
        "string",
    ),
}

OBJECTS: dict[str, tuple[JsonValue, str]] = {
    "required and optional": (
        {"type": "object", "properties": {"a": TEXT, "b": NUMBER}, "required": ["a"]},
        "{ a: string; b?: number }",
    ),
    "without a type": ({"properties": {"a": TEXT}}, "{ a?: string }"),
    "required alone": ({"required": ["a"]}, "{ a: unknown }"),
    "names that are none": (
        {"properties": {"a-b": TEXT, "1": TEXT, "名": TEXT, '"': TEXT}},
        r'{ "a-b"?: string; "1"?: string; "名"?: string; "\""?: string }',
    ),
    "any": ({"type": "object"}, "{ [key: string]: any }"),
    "any beside named ones": (
        {"properties": {"a": NUMBER}, "additionalProperties": True},
        "{ a?: number; [key: string]: any }",
    ),
    "a table": ({"additionalProperties": NUMBER}, "{ [key: string]: number }"),
    "a table of anything": (
        {"type": "object", "additionalProperties": {}},
        "{ [key: string]: any }",
    ),
    "patterns": (
        {"patternProperties": {"^a": NUMBER, "^b": TEXT}},
        "{ [key: string]: number | string }",
    ),
    "closed": (
        {"properties": {"a": TEXT}, "additionalProperties": False},
        "{ a?: string }",
    ),
    "empty": ({"type": "object", "properties": {}}, "{ [key: string]: never }"),
    "closed and empty": (
        {"type": "object", "additionalProperties": False},
        "{ [key: string]: never }",
    ),
    "one of two fields": (
        {"properties": {"a": TEXT, "b": TEXT}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "({ a?: string; b?: string } & ({ a: unknown } | { b: unknown }))",
    ),
    "nothing of its own": (
        {"type": "object", "oneOf": [{"properties": {"a": TEXT}}]},
        "{ a?: string }",
    ),
    "an object or nothing": (
        {"type": ["object", "null"], "properties": {"a": TEXT}},
        "{ a?: string } | null",
    ),
    "documented": (
        {"properties": {"a": {"type": "number", "description": "How many.", "default": 5}}},
        "{\n  /** How many. (default 5) */\n  a?: number;\n}",
    ),
    "with nothing but a default": (
        {"properties": {"a": {"type": "string", "default": "x", "description": 3}}},
        '{\n  /** (default "x") */\n  a?: string;\n}',
    ),
    "with a default that is long or nothing": (
        {"properties": {"a": {"default": "x" * 50}, "b": {"default": None}}},
        "{ a?: unknown; b?: unknown }",
    ),
    "long": (
        {"properties": {f"property{n}": TEXT for n in range(5)}, "required": ["property1"]},
        "{\n  property0?: string;\n  property1: string;\n  property2?: string;\n"
        "  property3?: string;\n  property4?: string;\n}",
    ),
}

LISTS: dict[str, tuple[JsonValue, str]] = {
    "of texts": ({"type": "array", "items": TEXT}, "readonly string[]"),
    "of anything": ({"type": "array"}, "readonly unknown[]"),
    "of lists": (
        {"items": {"type": "array", "items": TEXT}},
        "readonly (readonly string[])[]",
    ),
    "of either": ({"items": {"type": ["string", "null"]}}, "readonly (string | null)[]"),
    "of a negative number": ({"items": {"const": -1}}, "readonly (-1)[]"),
    "of objects": ({"items": {"properties": {"a": TEXT}}}, "readonly { a?: string }[]"),
    "a tuple": (
        {"items": [TEXT, NUMBER], "minItems": 1, "additionalItems": False},
        "readonly [string, number?]",
    ),
    "an open tuple": ({"items": [TEXT]}, "readonly [string?, ...unknown[]]"),
    "a tuple and more": (
        {"prefixItems": [TEXT], "items": NUMBER, "minItems": 1},
        "readonly [string, ...number[]]",
    ),
    "a tuple of so many": ({"prefixItems": [TEXT], "maxItems": 1}, "readonly [string?]"),
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(*case, id=f"{group}: {name}")
        for group, cases in {"plain": PLAIN, "object": OBJECTS, "list": LISTS}.items()
        for name, case in cases.items()
    ],
)
def test_a_schema_becomes_a_type(schema: JsonValue, expected: str) -> None:
    assert SchemaTypes(schema, "Pml", given=True, definitions={}).text() == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array", "items": TEXT}, "string[]"),
        ({"type": "array", "items": [TEXT]}, "[string?, ...any[]]"),
        ({}, "any"),
        ({"required": ["a"]}, "{ a: any }"),
    ],
)
def test_what_a_program_gets_may_be_used_where_its_type_is_silent(
    schema: JsonValue, expected: str
) -> None:
    assert SchemaTypes(schema, "Pml", given=False, definitions={}).text() == expected


def test_a_reference_inside_becomes_a_name_and_recursion_ends() -> None:
    found: dict[str, str] = {}
    schema: JsonValue = {
        "$defs": {
            "tree node": {"properties": {"children": {"items": {"$ref": "#/$defs/tree node"}}}}
        },
        "properties": {"root": {"$ref": "#/$defs/tree node"}},
    }
    assert SchemaTypes(schema, "PmlX", True, found).text() == "{ root?: PmlX_TreeNode }"
    assert found == {"PmlX_TreeNode": "{ children?: readonly PmlX_TreeNode[] }"}


def test_a_reference_outside_is_written_out() -> None:
    schema: JsonValue = {"definitions": {"T": TEXT}, "anyOf": [{"$ref": "#/definitions/T"}, NUMBER]}
    assert SchemaTypes(schema, "Pml", True, {}).text() == "string | number"


def test_a_reference_into_the_middle_of_a_schema_is_followed() -> None:
    schema: JsonValue = {
        "properties": {
            "a": {"anyOf": [TEXT, {"properties": {"x/y": NUMBER}}]},
            "b": {"$ref": "#/properties/a/anyOf/1/properties/x~1y", "nullable": True},
        }
    }
    found: dict[str, str] = {}
    text = SchemaTypes(schema, "Pml", True, found).text()
    assert text == '{ a?: string | { "x/y"?: number }; b?: Pml_X1y | null }'
    assert found == {"Pml_X1y": "number"}


def test_two_definitions_of_one_name_get_names_of_their_own() -> None:
    found = {"PmlX_A": "number"}
    schema: JsonValue = {"$defs": {"a": TEXT}, "items": {"$ref": "#/$defs/a"}}
    assert SchemaTypes(schema, "PmlX", True, found).text() == "readonly PmlX_A2[]"
    assert found == {"PmlX_A": "number", "PmlX_A2": "string"}


@pytest.mark.parametrize(
    "name", ["itself", "round and round", "references to nowhere", "doubling", "no types"]
)
def test_what_says_nothing_is_left_open(name: str) -> None:
    found: dict[str, str] = {}
    text = SchemaTypes(HOSTILE_SCHEMAS[name], "Pml", True, found).text()
    assert "unknown" in [text, *found.values()]


@pytest.mark.parametrize("schema", HOSTILE_SCHEMAS.values(), ids=HOSTILE_SCHEMAS)
def test_no_schema_makes_a_type_without_end(schema: JsonValue) -> None:
    for given in (True, False):
        found: dict[str, str] = {}
        text = SchemaTypes(schema, "Pml", given, found).text()
        assert len(text) + sum(map(len, found.values())) < 250_000
