"""Parts of results that JSON does not say, from the sandbox's message to the end of a run."""

import json

import pytest

from pml_common.contracts.trace import CapabilityEnd, CapabilityStart
from pml_executor.domain.capabilities import CapabilityCalls
from pml_executor.domain.endings import Ending
from pml_executor.domain.events import run_ended, run_started
from pml_executor.domain.finished import MOST_NOTICES, finished
from pml_executor.domain.frames import Frame
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.protocol import Entered, Left, ProtocolViolation, Returned, parse_frame
from services.executor.tests.support.builders import capability, make_command

COMMAND = make_command("", injected=(capability("fs:stat", "stat"),))


def _frame(**message: object) -> Frame:
    return Frame("program", json.dumps(message).encode())


def test_the_sandbox_says_what_a_value_lost() -> None:
    returned = parse_frame(_frame(kind="returned", value=None, lost=["result was NaN"]))
    assert returned == [Returned(kind="returned", value=None, lost=("result was NaN",))]
    left = parse_frame(_frame(kind="left", id=1, value=None, lost=["result was NaN"]))
    assert left == [Left(kind="left", id=1, value=None, lost=("result was NaN",))]


@pytest.mark.parametrize("lost", [["x"] * 22, ["x" * 1001]])
def test_more_than_the_runtime_says_is_refused(lost: list[str]) -> None:
    with pytest.raises(ProtocolViolation):
        parse_frame(_frame(kind="returned", value=None, lost=lost))


def test_notices_of_a_run_are_its_own_before_those_of_its_capabilities_each_once() -> None:
    calls = CapabilityCalls(COMMAND, RunJournal())
    lossy = Ending(notices=("result was NaN: it became null",))
    nested = list[CapabilityStart | CapabilityEnd | None]()
    for number in range(2):
        entered = Entered(kind="entered", id=number, within=None, node="n1", capability=0, args={})
        nested += [calls.enter(entered, 2.0), calls.leave(number, lossy, 3.0)]
    own = Ending(notices=("result.a was a function: it is left out",))
    known = [entry for entry in nested if entry is not None]
    entries = [run_started(COMMAND, 1.0), *known, run_ended(COMMAND, own, 1.0, 4.0)]
    assert finished(COMMAND, entries).notices == (
        "result.a was a function: it is left out",
        "fs:stat: result was NaN: it became null",
    )


def test_notices_are_bounded_and_the_others_counted() -> None:
    own = Ending(notices=tuple(f"{n}" for n in range(MOST_NOTICES + 3)))
    entries = [run_started(COMMAND, 1.0), run_ended(COMMAND, own, 1.0, 4.0)]
    told = finished(COMMAND, entries).notices
    assert told == (*own.notices[:MOST_NOTICES], "3 other parts of results were lost, too")
