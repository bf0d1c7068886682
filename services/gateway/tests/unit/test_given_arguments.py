"""Arguments of capabilities, compared with the schema of their parameters."""

import pytest

from pml_common.contracts.parameters import CERTAIN
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.given_arguments import doubts, missing_arguments, require_fitting

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer"},
        "mode": {"enum": ["a", "b"]},
        "rows": {"type": "array", "items": {"type": "object", "required": ["id"]}},
        "any": {},
        "long": {"type": "string", "description": "very " * 99},
    },
    "required": ["path", "limit"],
    CERTAIN: {
        "properties": {
            "path": {"type": "string"},
            "mode": {"enum": ["a", "b", None]},
            "on": {"type": ["boolean", "null"]},
            "long": {"type": "string", "description": "very " * 99},
            "rows": {"items": {"properties": {"id": {"type": "number"}}, "required": ["id"]}},
        },
        "required": ["path"],
    },
}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "args.path is missing. Nothing ran. fs:look takes path (string), limit (integer)"),
        ({}, 'Its schema: {"type": "string"}'),
        ({"path": "a", "long": 1}, "args.long is 1, and must be a string."),
        ({"path": "a", "long": 1}, "…"),
        ({"path": None}, "args.path is missing."),
        ({"Path": "a"}, "args.path is missing. Is Path meant for it?"),
        ({"path": ["a"]}, 'args.path is ["a"], and must be a string.'),
        ({"path": "a", "mode": "c"}, 'is "c", and must be one of "a", "b".'),
        ({"path": "a", "on": 1}, "args.on is 1, and must be a boolean."),
        ({"path": "a", "rows": [{"id": 1}, {}]}, "args.rows[1].id is missing."),
        ({"path": "a", "rows": [{"id": True}]}, "args.rows[0].id is true, and must be a number."),
        ({"path": {"a": "b" * 90}}, "…, and must be a string."),
    ],
)
def test_arguments_that_cannot_work_are_refused_with_the_field(args: JsonObject, said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        require_fitting("fs:look", SCHEMA, args)
    assert said in str(refused.value)
    assert (refused.value.field or "").startswith("args.")


@pytest.mark.parametrize(
    "args",
    [
        {"path": "a"},
        {"path": "a", "mode": None, "on": True, "limit": "many"},
        {"path": "a", "mode": "a", "rows": [{"id": 1.5}], "more": 1},
    ],
)
def test_all_others_are_not(args: JsonObject) -> None:
    require_fitting("fs:look", SCHEMA, args)
    require_fitting("fs:look", {}, args)


def test_what_is_only_inferred_or_unknown_is_a_doubt() -> None:
    args: JsonObject = {"path": "a", "limit": 2.5, "mdoe": "a", "rows": [{}], "any": 1}
    assert doubts(SCHEMA, args) == (
        "args.limit is 2.5, and must be an integer.",
        "args.rows[0].id is missing.",
        "args.mdoe is no known parameter of the capability; did you mean mode?",
    )
    assert doubts(SCHEMA, {"path": "a", "limit": 2.0}) == ()
    assert doubts({}, args) == ()
    assert len(doubts(SCHEMA, {f"x{n}": n for n in range(50)})) == 10


def test_depth_is_bounded() -> None:
    schema: JsonObject = {"type": "string"}
    value: JsonObject = {}
    for _ in range(12):
        schema, value = {"properties": {"a": schema}}, {"a": value}
    assert doubts(schema, value) == ()


def test_what_is_missing_is_named_whoever_says_that_it_is_needed() -> None:
    assert missing_arguments(SCHEMA, {"limit": 1}) == ("path",)
    assert missing_arguments(SCHEMA, {}) == ("path", "limit")
