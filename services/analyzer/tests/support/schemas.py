"""JSON Schemas that real and hostile servers send, and tools made of them."""

import json
from itertools import product
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from pml_common.contracts.tool import ToolDefinition

CATALOGUE: Final = Path(__file__).parents[5] / "shared/data/livemcpbench/tools.json"
"""The tools of LiveMCPBench, where that data is beside the checkout."""

HOSTILE_TEXTS: Final = {
    "end of comment": "*/ declare const evil: Nope; /*",
    "directive": "@ts-expect-error\n@ts-nocheck",
    "tags": "@deprecated {@link Nope} @type {import('./nope.ts').Nope}",
    "reference": '/// <reference path="/etc/passwd" />',
    "line ends": "one\r\n\u2028two\u2029three\n\n\n * four",
    "half a character": "\ud800",
    "NUL and friends": "a\0b\x01c\x7fd\x85e\ufefff",
    "template": "${1} `backticks` \\u0041 \\",
    "quotes": "'\"",
    "long": "word " * 2_000,
    "one long word": "x" * 5_000,
    "empty": " \n ",
}

HOSTILE_NAMES: Final = (
    "",
    "new",
    "constructor",
    "__proto__",
    "call",
    "then",
    "a b",
    "a-b",
    "a_b",
    "1st",
    "名前",
    '"}; declare const evil: Nope; interface X {"',
    "*/",
    "\u2028",
    "\ud800",
    "\\",
    "readonly",
    "[key: string]",
)


def _tower(levels: int) -> JsonValue:
    schema: JsonValue = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


HOSTILE_SCHEMAS: Final[dict[str, JsonValue]] = {
    "no schema": 7,
    "true": True,
    "false": False,
    "null": None,
    "empty": {},
    "type of no kind": {"type": "strnig"},
    "type that is a number": {"type": 3},
    "no types": {"type": []},
    "schemas as types": {"type": [{"type": "string"}, "null"]},
    "properties that are a list": {"type": "object", "properties": ["a"]},
    "required that is a text": {"type": "object", "required": "a"},
    "required of numbers": {"required": [1, None, "a"]},
    "a property that is no schema": {"properties": {"a": None, "b": "string", "c": [1]}},
    "an own key beside others": {
        "properties": {"a": {"type": "number"}},
        "additionalProperties": {"type": "string"},
    },
    "patterns": {"patternProperties": {"^x": {"type": "string"}, "[": {"type": "number"}}},
    "nothing allowed": {"type": "object", "additionalProperties": False},
    "a list of schemas": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
    "a tuple of 2020": {"prefixItems": [{"type": "string"}], "items": False, "minItems": 1},
    "a bounded tuple": {"prefixItems": [{"enum": [-1, "a"]}], "maxItems": 1},
    "an empty enum": {"enum": []},
    "an enum of everything": {"enum": ["a", 1, -1.5, 1e308, 10**400, True, None, {}, []]},
    "constants": {"anyOf": [{"const": {"a": 1}}, {"const": 'x"y'}, {"const": -3}]},
    "nullable": {"type": "string", "nullable": True},
    "a contradiction": {"allOf": [{"type": "string"}, {"type": "number"}]},
    "parts and a whole": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "a list node": {
        "$defs": {
            "Node": {"properties": {"next": {"$ref": "#/$defs/Node"}, "v": {"type": "number"}}}
        },
        "$ref": "#/$defs/Node",
    },
    "itself": {"$ref": "#"},
    "itself in a list": {"type": "array", "items": {"$ref": "#"}},
    "itself or a text": {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
    "round and round": {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        "properties": {"x": {"$ref": "#/$defs/a"}},
    },
    "references to nowhere": {
        "anyOf": [
            {"$ref": "#/$defs/none"},
            {"$ref": "https://example.com/schema.json"},
            {"$ref": "#anchor"},
            {"$ref": "#/anyOf/9"},
            {"$ref": "#/anyOf/x"},
            {"$ref": 5},
        ]
    },
    "a reference with escapes": {
        "$defs": {"a/b~c d": {"type": "string"}},
        "properties": {"x": {"$ref": "#/$defs/a~1b~0c%20d"}},
    },
    "a reference into a list": {
        "oneOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/oneOf/0"}}]
    },
    "doubling": {
        "$defs": {
            f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
            for n in range(40)
        },
        "$ref": "#/$defs/d0",
    },
    "a long chain": {
        "$defs": {
            f"d{n}": {"properties": {"next": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(3_000)
        },
        "$ref": "#/$defs/d0",
    },
    "a tower": _tower(60),
    "a wide one": {"properties": {f"p{n}": {"type": "string"} for n in range(5_000)}},
    "a deep constant": {"const": json.loads("[" * 100 + "]" * 100)},
    **{
        f"text: {name}": {"properties": {"a": {"description": text, "default": text}}}
        for name, text in HOSTILE_TEXTS.items()
    },
    "names": {
        "properties": {name: {"type": "string"} for name in HOSTILE_NAMES},
        "required": list(HOSTILE_NAMES),
    },
    "values": {"enum": [*HOSTILE_NAMES, *HOSTILE_TEXTS.values()]},
    "names of definitions": {
        "$defs": {name: {"type": "string"} for name in HOSTILE_NAMES},
        "properties": {name: {"$ref": f"#/$defs/{name}"} for name in HOSTILE_NAMES},
    },
}


def hostile_tools() -> list[ToolDefinition]:
    """Return a tool for every schema, as input and output, for every name and for every text."""
    of_schemas = [
        ToolDefinition(
            server="schemas", name=name, input_schema=_object(schema), output_schema=_object(schema)
        )
        for name, schema in HOSTILE_SCHEMAS.items()
    ]
    of_names = [
        ToolDefinition(server=server, name=name)
        for server, name in product(HOSTILE_NAMES, HOSTILE_NAMES)
    ]
    of_texts = [
        ToolDefinition(server="texts", name=name, description=text)
        for name, text in HOSTILE_TEXTS.items()
    ]
    return [*of_schemas, *of_names, *of_texts]


def _object(schema: JsonValue) -> dict[str, JsonValue]:
    return schema if isinstance(schema, dict) else {"properties": {"it": schema}}


def livemcpbench() -> list[ToolDefinition]:
    """Return the 527 tools of LiveMCPBench. Raises FileNotFoundError without that data."""
    document: list[Any] = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return [
        ToolDefinition(
            server=server,
            name=tool["name"],
            description=tool["description"] or "",
            input_schema=tool["inputSchema"],
            output_schema=tool.get("outputSchema"),
        )
        for entry in document
        for server, listed in entry["tools"].items()
        for tool in listed["tools"]
    ]
