"""The order in which a run gets its answers, and deviations from it."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts import ids
from pml_common.contracts.tool import args_hash
from pml_common.contracts.trace import (
    CapabilityEnd,
    CapabilityStart,
    DecisionTaken,
    LogWritten,
    LoopPassed,
    ToolEnd,
    ToolStart,
    TraceEvent,
)
from pml_executor.domain.journal import Diverged, RunJournal

WORKFLOW = UUID("0197f0c4-0000-7000-8000-000000000001")
ROOT = ids.root_trace_id(WORKFLOW)
BEGIN = CapabilityStart(trace_id=ROOT, ts=0, capability_id=WORKFLOW, args={})
END = CapabilityEnd(trace_id=ROOT, ts=99, capability_id=WORKFLOW, success=True, duration_ms=99)


def start(node: str, occurrence: int = 0, ts: float = 1, tool: str = "api:a") -> ToolStart:
    return ToolStart(
        trace_id=ids.call_trace_id(WORKFLOW, node, occurrence),
        node_id=node,
        occurrence=occurrence,
        ts=ts,
        tool=tool,
        args={},
        args_hash=args_hash({}),
    )


def end(node: str, occurrence: int = 0, ts: float = 2) -> ToolEnd:
    return ToolEnd(
        trace_id=ids.call_trace_id(WORKFLOW, node, occurrence),
        node_id=node,
        occurrence=occurrence,
        ts=ts,
        tool="api:a",
        success=True,
        duration_ms=1,
    )


def branch(node: str, outcome: str = "true", occurrence: int = 0) -> DecisionTaken:
    return DecisionTaken(trace_id=ROOT, node_id=node, occurrence=occurrence, ts=3, outcome=outcome)


def round_of(node: str, iterations: int, counted: int = 0) -> LoopPassed:
    return LoopPassed(
        trace_id=ROOT,
        node_id=node,
        occurrence=iterations - 1,
        ts=3,
        iterations=iterations,
        counted=counted,
    )


def line(message: str) -> LogWritten:
    return LogWritten(trace_id=ROOT, ts=4, level="info", message=message)


def released(journal: RunJournal) -> list[str]:
    return [f"{e.node_id}/{e.occurrence}" for e in journal.due()]


def test_a_first_run_gets_each_answer_as_soon_as_it_is_stored() -> None:
    journal = RunJournal()
    journal.add([BEGIN])
    call = journal.call("n1", "api:a", {})
    assert (call.start, call.ended, call.occurrence) == (None, False, 0)
    journal.add([start("n1")])
    assert released(journal) == []
    journal.add([end("n1")])
    assert released(journal) == ["n1/0"]
    assert released(journal) == []


def test_recorded_answers_wait_for_everything_before_them() -> None:
    recorded = [BEGIN, start("n1"), start("n2"), branch("d1"), end("n2"), start("n3"), end("n1")]
    journal = RunJournal(recorded)
    assert journal.call("n2", "api:a", {}).ended
    assert released(journal) == []
    assert journal.call("n1", "api:a", {}).ended
    assert released(journal) == []
    assert journal.decide("d1", "true") is None
    assert released(journal) == ["n2/0"]
    third = journal.call("n3", "api:a", {})
    assert third.start == recorded[5]
    assert not third.ended
    assert released(journal) == ["n1/0"]
    journal.add([end("n3")])
    assert released(journal) == ["n3/0"]


def test_a_live_answer_waits_until_the_recorded_ones_are_out() -> None:
    journal = RunJournal([BEGIN, start("n1"), start("n2"), end("n2")])
    journal.call("n1", "api:a", {})
    journal.add([end("n1")])
    assert released(journal) == []
    journal.call("n2", "api:a", {})
    assert released(journal) == ["n2/0", "n1/0"]


def test_occurrences_are_counted_by_node() -> None:
    journal = RunJournal()
    keys = [journal.call(node, "api:a", {}).key for node in ("n1", "n2", "n1")]
    assert keys == [("n1", 0), ("n2", 0), ("n1", 1)]
    assert [journal.decide("d1", "true"), journal.decide("d1", "false")] == [0, 1]


def test_rounds_are_numbered_by_node() -> None:
    journal = RunJournal()
    assert [journal.begin_round(node) for node in ("l1", "l2", "l1")] == [1, 1, 2]
    assert journal.begin_round("l1", times=10) == 12


def test_what_is_only_counted_has_the_number_of_its_last() -> None:
    journal = RunJournal()
    assert [journal.decide("d1", "true", 3), journal.decide("d1", "false")] == [2, 3]


def test_reports_that_are_recorded_are_not_recorded_again() -> None:
    recorded = [round_of("l1", 1), branch("d1"), round_of("l1", 5, counted=4)]
    journal = RunJournal([BEGIN, *recorded, branch("d1", "false", 7)])
    assert journal.begin_round("l1") is None
    assert journal.decide("d1", "true") is None
    assert journal.begin_round("l1", times=4) is None
    assert journal.decide("d1", "false", 7) is None
    assert [journal.begin_round("l1"), journal.decide("d1", "true")] == [6, 8]
    journal.complete()


def test_an_answer_waits_for_the_round_that_began_before_it() -> None:
    journal = RunJournal([BEGIN, start("n1"), round_of("l1", 3, counted=3), end("n1")])
    journal.call("n1", "api:a", {})
    assert released(journal) == []
    journal.begin_round("l1", times=3)
    assert released(journal) == ["n1/0"]


def test_lines_that_are_recorded_are_not_recorded_again() -> None:
    journal = RunJournal([BEGIN, line("one"), line("two")])
    assert [journal.log() for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("tool", "args", "message"),
    [
        ("api:b", {}, "n1 (time 1) calls api:b; the journal has it as api:a"),
        ("api:a", {"x": 1}, "n1 (time 1) calls api:a; the journal has it with other arguments"),
    ],
)
def test_another_call_at_a_recorded_place_is_a_divergence(
    tool: str, args: dict[str, int], message: str
) -> None:
    journal = RunJournal([BEGIN, start("n1")])
    with pytest.raises(Diverged) as raised:
        journal.call("n1", tool, dict(args))
    assert (str(raised.value), raised.value.node_id) == (message, "n1")


def test_another_branch_than_the_recorded_one_is_a_divergence() -> None:
    journal = RunJournal([BEGIN, branch("d1", "true")])
    with pytest.raises(Diverged, match="goes false; the journal has it true"):
        journal.decide("d1", "false")


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ([start("n1", tool="fs:write")], r"n1 \(time 1\) \(fs:write\), which the program no"),
        ([branch("d1")], r"d1 \(time 1\) \(a decision\)"),
        ([round_of("l1", 2)], r"l1 \(time 2\) \(a round\)"),
    ],
)
def test_leaving_out_what_is_recorded_is_a_divergence(left: list[TraceEvent], message: str) -> None:
    journal = RunJournal([BEGIN, *left, line("a line may be left out")])
    with pytest.raises(Diverged, match=message):
        journal.complete()


def test_a_replay_waits_for_the_next_entry_twice_as_long_as_it_took_and_some_more() -> None:
    journal = RunJournal([BEGIN, start("n1", ts=1), end("n1", ts=10), start("n2", ts=3010)])
    assert journal.awaited() is None
    journal.call("n1", "api:a", {})
    journal.due()
    entry, patience_ms = journal.awaited() or (None, 0)
    assert (entry, patience_ms) == (start("n2", ts=3010), 11_000)
    journal.call("n2", "api:a", {})
    journal.due()
    assert journal.awaited() is None
    journal.complete()


def test_a_journal_is_closed_by_the_end_of_its_outermost_capability() -> None:
    assert not RunJournal().closed
    assert not RunJournal([BEGIN]).closed
    assert RunJournal([BEGIN, END]).closed


def test_the_order_of_keys_does_not_change_a_hash() -> None:
    assert args_hash({"a": 1, "b": [1, {"c": None, "d": "é"}]}) == args_hash(
        {"b": [1, {"d": "é", "c": None}], "a": 1}
    )
    assert args_hash({"a": 1}) != args_hash({"a": "1"})


@given(
    order=st.permutations([f"n{i}" for i in range(5)]),
    again=st.permutations([f"n{i}" for i in range(5)]),
    recorded=st.integers(0, 5),
)
def test_parallel_calls_resume_in_any_order_and_answer_in_the_recorded_one(
    order: list[str], again: list[str], recorded: int
) -> None:
    """Make all calls at once, answer in `order`; the executor dies after `recorded` answers."""
    starts = [start(f"n{i}") for i in range(5)]
    ended = [end(node) for node in order]
    journal = RunJournal([BEGIN, *starts, *ended[:recorded]])
    calls = [journal.call(node, "api:a", {}) for node in again]
    first = released(journal)
    assert first == [f"{node}/0" for node in order[:recorded]]
    missing = [call for call in calls if not call.ended]
    assert {call.node_id for call in missing} == set(order[recorded:])
    journal.add([end(call.node_id) for call in missing])
    assert released(journal) == [f"{call.node_id}/0" for call in missing]
    journal.complete()
