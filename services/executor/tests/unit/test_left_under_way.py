"""Errors of programs that end before what they began."""

import pytest

from pml_executor.domain.journal import Call
from pml_executor.domain.left_under_way import left_under_way
from pml_executor.domain.protocol import DroppedPromise, Returned
from services.executor.tests.support.builders import capability, make_command

CALLS = {0: Call("n1", 0, "fs:read", {}, "", None, False)}
LEFT = Returned(kind="returned", value=1, under_way=(0, 7))


def test_a_program_that_left_nothing_has_no_error() -> None:
    nothing = Returned(kind="returned", value=1)
    assert left_under_way(make_command("return 1;"), nothing, CALLS) is None


def test_numbers_that_are_no_calls_are_ignored() -> None:
    unknown = Returned(kind="returned", value=1, under_way=(7,))
    assert left_under_way(make_command("return 1;"), unknown, CALLS) is None


@pytest.mark.parametrize(
    "code",
    ["Promise.race([])", "Promise . any(x)", "Promise?.all(x)", "Promise['race'](x)"],
)
def test_calls_may_be_left_where_promises_are_chosen_from(code: str) -> None:
    assert left_under_way(make_command(code), LEFT, CALLS) is None
    chosen = capability("a:chooses", code)
    assert left_under_way(make_command("return 1;", injected=[chosen]), LEFT, CALLS) is None


def test_a_dropped_promise_is_an_error_wherever_it_is() -> None:
    dropped = (
        DroppedPromise(line=3, column=1, chain="a:b → c:d"),
        DroppedPromise(line=9, column=2),
    )
    returned = Returned(kind="returned", value=1, dropped=dropped)
    error = left_under_way(make_command("Promise.race([])"), returned, {})
    assert error is not None
    assert (error.line, error.node_id) == (None, None)
    assert "a:b → c:d, line 3, column 1 is not awaited; line 9, column 2 is" in error.message
