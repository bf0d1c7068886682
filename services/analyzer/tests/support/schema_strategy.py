"""JSON Schemas of every odd form: every keyword that types are read from, with values that fit it
more or less."""

from hypothesis import strategies as st
from pydantic import JsonValue

from services.analyzer.tests.support.schemas import HOSTILE_NAMES, HOSTILE_TEXTS

_REQUIRED: st.SearchStrategy[JsonValue] = st.sampled_from(["a", "b", *HOSTILE_NAMES])
_NAMES = st.sampled_from(["a", "b", "c", *HOSTILE_NAMES])
_DEFINED = ["#/$defs/a", "#/$defs/b", "#/$defs/a/properties/b"]
_PARTS = ["#", "#/properties/a", "#/items", "#/anyOf/0", "#/anyOf/1", "#/allOf/0"]
_POINTERS = st.sampled_from([*_DEFINED, *_PARTS, "#/nowhere", "elsewhere"])
_VALUES = st.sampled_from([None, True, False, 0, -1, 1.5, "a", "b", *HOSTILE_TEXTS.values()])
_TYPES: st.SearchStrategy[JsonValue] = st.sampled_from(
    ["string", "number", "integer", "boolean", "null", "object", "array", "strange"]
)


def _combined(part: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    few = st.lists(part, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "$defs": st.dictionaries(st.sampled_from("ab"), part, max_size=2),
            "$ref": _POINTERS,
            "additionalItems": part,
            "additionalProperties": part,
            "allOf": few,
            "anyOf": few,
            "default": _VALUES,
            "description": st.sampled_from(list(HOSTILE_TEXTS.values())),
            "items": st.one_of(part, few),
            "maxItems": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "nullable": st.booleans(),
            "oneOf": few,
            "patternProperties": st.dictionaries(_NAMES, part, max_size=1),
            "prefixItems": few,
            "properties": st.dictionaries(_NAMES, part, max_size=3),
            "required": st.lists(_REQUIRED, max_size=2),
            "type": st.one_of(_TYPES, st.lists(_TYPES, max_size=3)),
        },
    )


def _with(key: str, value: JsonValue) -> JsonValue:
    return {key: value}


_PLAIN: st.SearchStrategy[JsonValue] = st.one_of(
    st.booleans(),
    st.builds(_with, st.just("type"), _TYPES),
    st.builds(_with, st.just("$ref"), _POINTERS),
    st.builds(_with, st.just("enum"), st.lists(_VALUES, max_size=3)),
    st.builds(_with, st.just("const"), _VALUES),
)
SCHEMAS = _combined(st.recursive(_PLAIN, _combined, max_leaves=8))
"""Schemas that are objects, as those of tools are."""
