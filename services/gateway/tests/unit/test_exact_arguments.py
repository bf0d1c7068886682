"""Integers in requests that a program would round."""

from typing import Any

import pytest

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.exact_arguments import require_exact_integers

LARGE = 2**53


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"code": "return 1;", "args": {"a": [{"id": LARGE}]}}, "args.a.0.id"),
        ({"code": "return 1;", "context": {"id": -LARGE}}, "context.id"),
        (
            {"code": "return 1;", "dry_run": True, "dry_run_mocks": {"fs:read": LARGE}},
            "dry_run_mocks",
        ),
        ({"tool": {"tool_id": "fs:read", "default_args": {"id": LARGE}}}, "tool.default_args.id"),
        (
            {"dag": {"tasks": [{"id": "a", "tool": "fs:read", "arguments": {"id": LARGE}}]}},
            "dag.tasks.0.arguments.id",
        ),
    ],
)
def test_an_integer_that_a_program_would_round_is_refused(given: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        require_exact_integers(ExecuteRequest.model_validate(given))
    assert str(refused.value.field).startswith(field)
    assert "send its digits as a string" in str(refused.value)


def test_other_numbers_and_digits_are_accepted() -> None:
    args: JsonObject = {"id": str(LARGE), "n": LARGE - 1, "x": 1e300}
    require_exact_integers(ExecuteRequest(code="return 1;", args=args))
