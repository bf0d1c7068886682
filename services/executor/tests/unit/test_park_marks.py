"""Marks in a journal, and the data of a call shown to a person."""

from uuid import uuid4

import pytest

from pml_common.bus.run_journal import mark_of
from pml_common.contracts.executor import ParkMark, WantedCall
from pml_common.contracts.tool import args_hash
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.parking import (
    MOST_AT_ONCE,
    Parking,
    is_parked,
    parked_ms,
    parked_under,
    wanted_call,
    workflow_parked,
)
from pml_executor.domain.protocol import CallMade
from services.executor.tests.support.builders import make_command

WANTED = "mail:send"


def mark(ts: float, *, wanted: bool) -> ParkMark:
    call = WantedCall(
        node_id="dyn:mail:send",
        occurrence=0,
        tool=WANTED,
        args_hash="",
        args={},
    )
    return ParkMark(command_id=uuid4(), ts=ts, wanted=call if wanted else None)


def test_marks_tell_whether_and_for_how_long_a_run_waits() -> None:
    marks = [mark(10, wanted=True), mark(25, wanted=False), mark(30, wanted=True)]
    assert (is_parked([]), parked_ms([])) == (False, 0)
    assert (is_parked(marks[:1]), parked_ms(marks[:1])) == (True, 0)
    assert (is_parked(marks[:2]), parked_ms(marks[:2])) == (False, 15)
    assert (is_parked(marks), parked_ms(marks)) == (True, 15)
    assert parked_ms([mark(9, wanted=True), mark(3, wanted=False)]) == 0
    command = make_command("")
    own = [each.model_copy(update={"command_id": command.command_id}) for each in marks]
    beside = own[0].model_copy(update={"beside": (own[2].wanted, own[2].wanted)})
    assert parked_under(command, marks) == ()
    assert parked_under(command, own[:1]) == (own[0].wanted,)
    assert parked_under(command, [beside]) == (own[0].wanted,) * 3
    assert parked_under(command, own[:2]) == ()


def test_a_park_names_every_call_that_the_run_waits_at() -> None:
    command = make_command("")
    call = mark(0, wanted=True).wanted
    assert call is not None
    calls = tuple(call.model_copy(update={"occurrence": n}) for n in range(3))
    made = mark_of(workflow_parked(command, calls, (), 5.0))
    assert made is not None
    assert (made.command_id, made.ts, made.wanted, made.beside) == (
        command.command_id,
        5.0,
        calls[0],
        calls[1:],
    )
    assert parked_under(command, [made]) == calls


def test_one_question_is_about_no_more_calls_than_a_person_can_be_asked_about() -> None:
    call = mark(0, wanted=True).wanted
    assert call is not None
    assert len(Parking([call] * (MOST_AT_ONCE + 1)).wanted) == MOST_AT_ONCE


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
    place: tuple[int | None, int | None, int | None],
    told: tuple[int | None, int | None],
) -> None:
    command = make_command("first();\n«  »  mcp.call(name);")
    line, column, module = place
    made = CallMade(
        kind="call", id=0, node=None, tool=WANTED, args={}, line=line, column=column, module=module
    )
    call = RunJournal().call("dyn:mail:send", WANTED, {})
    wanted = wanted_call(command, call, made, "not seen")
    assert (wanted.line, wanted.column) == told
    assert (wanted.why, wanted.args, wanted.args_hash) == ("not seen", {}, args_hash({}))
