"""What marks in a journal tell, and what a person is shown of a call."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from pml_common.contracts.executor import ParkMark, RunWorkflow, WantedCall
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.parking import (
    Parking,
    allowed_alone,
    is_parked,
    parked_ms,
    parked_under,
    preview,
)
from pml_executor.domain.protocol import CallMade

WANTED = "mail:send"


def mark(ts: float, *, wanted: bool) -> ParkMark:
    call = WantedCall(
        node_id="dyn:mail:send",
        occurrence=0,
        tool=WANTED,
        definition_hash="mails",
        args_hash="",
        preview={},
    )
    return ParkMark(command_id=uuid4(), ts=ts, wanted=call if wanted else None)


def test_marks_tell_whether_and_for_how_long_a_run_waits() -> None:
    marks = [mark(10, wanted=True), mark(25, wanted=False), mark(30, wanted=True)]
    assert (is_parked([]), parked_ms([])) == (False, 0)
    assert (is_parked(marks[:1]), parked_ms(marks[:1])) == (True, 0)
    assert (is_parked(marks[:2]), parked_ms(marks[:2])) == (False, 15)
    assert (is_parked(marks), parked_ms(marks)) == (True, 15)
    assert parked_ms([mark(9, wanted=True), mark(3, wanted=False)]) == 0
    assert parked_under(marks[0].command_id, marks) == marks[0].wanted
    assert parked_under(marks[1].command_id, marks) is None
    assert parked_under(uuid4(), marks) is None


def test_long_arguments_are_shown_in_part() -> None:
    shown = preview({"n": 1, "text": "x" * 300, "list": ["y" * 300]})
    assert shown["n"] == 1
    assert shown["text"] == "x" * 239 + "…"
    assert str(shown["list"]).startswith('["yyy')
    assert len(str(shown["list"])) == 240
    assert len(preview({f"a{n}": n for n in range(50)})) == 20


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ((2, 5, None), (2, 3)),
        ((2, 5, 0), (None, None)),
        ((None, None, None), (None, None)),
        ((9, 1, None), (None, None)),
    ],
)
def test_a_wanted_call_stands_where_its_author_wrote_it(
    make_command: Callable[..., RunWorkflow],
    place: tuple[int | None, int | None, int | None],
    told: tuple[int | None, int | None],
) -> None:
    command = make_command("first();\n«  »  mcp.call(name);").model_copy(
        update={"askable": {WANTED: "mails"}}
    )
    line, column, module = place
    made = CallMade(
        kind="call", id=0, node=None, tool=WANTED, args={}, line=line, column=column, module=module
    )
    call = RunJournal().call("dyn:mail:send", WANTED, {})
    with pytest.raises(Parking) as parking:
        allowed_alone(command, call, made)
    wanted = parking.value.wanted
    assert (wanted.line, wanted.column) == told
