"""Arguments without which a failure is the caller's fault."""

import pytest

from pml_common.contracts.parameters import CERTAIN, argument_faults, needed_of
from pml_common.contracts.tool import JsonObject

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer"},
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "number"}, "name": {"type": "string"}},
                "required": ["id", "name"],
            },
        },
        "deep": {"properties": {"inner": {"type": "string"}}, "required": ["inner"]},
    },
    "required": ["path", "limit"],
    CERTAIN: {
        "properties": {
            "path": {"type": "string"},
            "rows": {"items": {"properties": {"id": {"type": "number"}}, "required": ["id"]}},
        },
        "required": ["path"],
    },
}


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        ({}, ["args.path", "args.limit"]),
        ({"path": 1, "limit": 2}, ["args.path"]),
        ({"path": "a", "limit": "many"}, []),
        ({"path": "a", "limit": 1, "rows": [{"id": "x", "name": 1}]}, ["args.rows[0].id"]),
        ({"path": "a", "limit": 1, "rows": [{"id": 1}]}, ["args.rows[0].name"]),
        ({"path": "a", "limit": 1, "deep": {"inner": 1}}, []),
        ({"path": "a", "limit": 1, "deep": {}}, ["args.deep.inner"]),
    ],
)
def test_what_is_certain_and_what_is_required_is_needed(
    args: JsonObject, fields: list[str]
) -> None:
    assert [fault.field for fault in argument_faults(needed_of(SCHEMA), args)] == fields


def test_types_that_are_only_inferred_are_not_needed() -> None:
    inferred: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}}}
    assert needed_of(inferred) == {}
    assert needed_of({CERTAIN: {"required": ["path"]}}) == {"required": ["path"]}
    assert needed_of({"required": ["path"]}) == {"required": ["path"]}
