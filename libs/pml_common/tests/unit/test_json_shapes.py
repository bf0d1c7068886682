"""Shapes of JSON values."""

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject
from pml_common.json_shapes import MOST_MEMBERS, MOST_VALUES, as_schema, merged, shape_of

NAMES = st.text(st.sampled_from("abc"), max_size=2)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


def shape(value: JsonValue) -> JsonObject:
    found = shape_of(value)
    assert found is not None
    return found


@given(VALUES, VALUES, VALUES)
def test_the_order_and_repetition_of_values_does_not_matter(
    one: JsonValue, two: JsonValue, three: JsonValue
) -> None:
    a, b, c = shape(one), shape(two), shape(three)
    assert merged(a, a) == a
    assert merged(a, b) == merged(b, a)
    assert merged(merged(a, b), c) == merged(a, merged(b, c))
    assert merged(merged(a, b), a) == merged(a, b)


def test_a_shape_names_members_and_those_in_all_values() -> None:
    both = merged(shape({"a": 1, "b": "x"}), shape({"a": 2.5, "c": []}))
    assert both == {
        "type": "object",
        "properties": {
            "a": {"type": "number"},
            "b": {"type": "string"},
            "c": {"type": "array"},
        },
        "required": ["a"],
        "additionalProperties": True,
    }


def test_items_of_lists_have_one_shape() -> None:
    assert shape([1, 2]) == {"type": "array", "items": {"type": "integer"}}
    assert shape([True, None]) == {"type": "array", "items": {"type": ["boolean", "null"]}}
    empty = shape([])
    assert merged(empty, shape(["x"])) == {"type": "array", "items": {"type": "string"}}
    assert merged(shape(["x"]), shape([1]))["items"] == {"type": ["integer", "string"]}


def test_too_large_values_have_no_shape() -> None:
    largest: list[JsonValue] = [0] * (MOST_VALUES - 1)
    assert shape_of(largest) is not None
    assert shape_of([*largest, 0]) is None


def test_names_that_are_data_are_not_part_of_a_shape() -> None:
    many: JsonValue = {str(n): n for n in range(MOST_MEMBERS + 1)}
    assert shape(many) == {"type": "object"}
    assert merged(shape(many), shape({"a": 1})) == {"type": "object"}


def test_deep_values_are_open() -> None:
    deep: JsonValue = "x"
    for _ in range(20):
        deep = {"a": deep}
    assert "string" not in str(shape(deep))


def test_a_shape_that_grows_too_large_covers_anything() -> None:
    found = shape({})
    for outer in range(MOST_MEMBERS):
        found = merged(found, shape({f"o{outer}": {f"i{inner}": 0 for inner in range(12)}}))
    assert found == {}
    assert merged(found, shape(1)) == {}


def test_nothing_is_said_where_kinds_are_mixed_or_all_null() -> None:
    assert as_schema(shape(None)) == {}
    assert as_schema(merged(shape("x"), shape({"a": 1}))) == {}
    assert as_schema(merged(shape("x"), shape(None))) == {"type": ["null", "string"]}
    said = as_schema(shape({"a": None, "b": [None], "c": 1}))
    assert said["properties"] == {
        "a": {},
        "b": {"type": "array", "items": {}},
        "c": {"type": "integer"},
    }
