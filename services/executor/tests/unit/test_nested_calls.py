"""Calls of capabilities: names, forged calls, errors and replays."""

from collections.abc import Callable
from uuid import UUID

import pytest

from pml_common.contracts import ids
from pml_common.contracts.trace import CapabilityStart
from pml_executor.domain.capabilities import CapabilityCalls, injected
from pml_executor.domain.endings import Ending, RunEnded
from pml_executor.domain.journal import Diverged, RunJournal
from pml_executor.domain.protocol import Entered, Threw
from services.executor.tests.support.builders import capability, make_command

OUTER, INNER = capability("a:outer", "outer"), capability("a:inner", "inner")
BOTH = (OUTER, INNER)


def test_each_capability_has_the_names_it_is_called_by_and_the_shared_ones() -> None:
    first, second = capability("a:b_c", "1"), capability("a:b-c", "2", "old_name", "a_b_c_x")
    suffix = second.capability_id.hex[-4:]
    told = {one.name: set(one.called_as) for one in injected([first, second])}
    assert told == {
        "a:b_c": {"a_b_c", "a:b_c"},
        "a:b-c": {"old_name", "a_b_c_x", f"a_b_c_{suffix}", "a:b-c"},
    }
    # What the analysis resolved goes before what the names of now would mean.
    swapped = second.model_copy(update={"called_as": ("a_b_c",)})
    told = {one.name: set(one.called_as) for one in injected([first, swapped])}
    assert "a_b_c" in told["a:b-c"] - told["a:b_c"]


def _entered(number: int = 0, caller: int | None = None, index: int = 0) -> Entered:
    return Entered(
        kind="entered", id=number, within=caller, node="n1", capability=index, args={"x": 1}
    )


def _threw(**more: object) -> Threw:
    fields = {"kind": "threw", "call": None, "line": None, "column": None, "name": "Error"}
    return Threw.model_validate({**fields, "message": "no", **more})


FORGED: dict[str, Callable[[CapabilityCalls], object]] = {
    "a number twice": lambda nesting: nesting.enter(_entered(0), 2.0),
    "no caller": lambda nesting: nesting.enter(_entered(7, caller=9), 2.0),
    "a capability after all": lambda nesting: nesting.enter(_entered(7, index=2), 2.0),
    "a capability before all": lambda nesting: nesting.enter(_entered(7, index=-1), 2.0),
    "a fourth level": lambda nesting: nesting.enter(_entered(7, caller=2), 2.0),
    "an end without a beginning": lambda nesting: nesting.leave(9, Ending(), 2.0),
    "a note from nowhere": lambda nesting: nesting.trace_of(9),
    "a place in no text": lambda nesting: nesting.failure(_threw(module=2), None),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_no_sandbox_sends_ends_the_run(forged: Callable[[CapabilityCalls], object]) -> None:
    nesting = CapabilityCalls(make_command("", injected=BOTH), RunJournal())
    for number, within in ((0, None), (1, 0), (2, 1)):
        assert nesting.enter(_entered(number, within), 1.0) is not None
    with pytest.raises(RunEnded, match="forged"):
        forged(nesting)


def test_an_error_that_a_capability_left_behind_has_its_name_and_no_place() -> None:
    nesting = CapabilityCalls(make_command("", injected=BOTH), RunJournal())
    error = nesting.failure(_threw(module=1, line=1, column=2), None)
    assert (error.message, error.line, error.column) == ("a:inner, line 1: no", None, None)
    unknown = nesting.failure(_threw(capability=5), None)
    assert unknown.message == "no"


def test_a_replay_that_calls_another_capability_or_none_diverges() -> None:
    command = make_command("", injected=BOTH)
    first = CapabilityCalls(command, RunJournal())
    start = first.enter(_entered(), 1.0)
    end = first.leave(0, Ending(result=1), 3.0)
    assert start is not None
    assert end is not None
    assert start.trace_id == ids.nested_trace_id(command.workflow_id, "n1", 0)
    assert (end.duration_ms, end.parent_trace_id) == (2.0, ids.root_trace_id(command.workflow_id))
    root = CapabilityStart(trace_id=UUID(int=1), ts=0.0, capability_id=UUID(int=1), args={})
    recorded = [root, start, end]

    journal = RunJournal(recorded)
    assert not journal.closed
    same = CapabilityCalls(command, journal)
    journal.due()
    assert journal.awaited() is not None
    with pytest.raises(Diverged, match=r"n1 \(time 1\) \(a capability\)"):
        journal.complete()
    assert same.enter(_entered(), 9.0) is None
    with pytest.raises(Diverged, match="the end of a capability"):
        journal.complete()
    assert same.leave(0, Ending(result=1), 9.0) is None
    journal.complete()

    with pytest.raises(Diverged, match="calls another capability"):
        CapabilityCalls(command, RunJournal(recorded)).enter(_entered(index=1), 9.0)
