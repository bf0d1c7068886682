"""Edges from the times of calls: sequences and parallel calls; and calls between capabilities."""

from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts import ids
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import EdgesObserved
from pml_common.contracts.trace import TaskResult
from pml_learner.domain.batch import messages_of
from pml_learner.domain.edges import observed_edges
from pml_learner.domain.lesson import Experience, learn
from pml_learner.domain.nested_runs import observed_calls
from pml_learner.domain.temporal_difference import TdRule
from services.learner.tests.support.builders import (
    CODE_HASH,
    SCOPE,
    finished_run,
    nested_run,
    tool_call,
)

CALLS = st.lists(
    st.tuples(st.sampled_from(["a:a", "b:b", "c:c"]), st.integers(0, 30), st.integers(0, 10)),
    max_size=12,
).map(lambda triples: [tool_call(tool, start, start + length) for tool, start, length in triples])


def _edges(*calls: TaskResult) -> dict[tuple[str, str], int]:
    return {(edge.from_tool, edge.to_tool): edge.count for edge in observed_edges(calls)}


def test_no_calls_show_no_edges() -> None:
    assert _edges() == {}


def test_each_call_leads_to_the_next_and_not_to_the_one_after() -> None:
    assert _edges(
        tool_call("fs:stat", 0, 5), tool_call("fs:create", 5, 8), tool_call("fs:write", 9, 12)
    ) == {
        ("fs:stat", "fs:create"): 1,
        ("fs:create", "fs:write"): 1,
    }


def test_overlapping_calls_are_parallel() -> None:
    assert _edges(tool_call("fs:read", 0, 5), tool_call("http:get", 4, 9)) == {}


def test_calls_around_a_parallel_part_are_connected_to_all_of_it() -> None:
    assert _edges(
        tool_call("fs:list", 0, 2),
        tool_call("fs:read", 3, 9),
        tool_call("http:get", 4, 6),
        tool_call("json:parse", 10, 11),
    ) == {
        ("fs:list", "fs:read"): 1,
        ("fs:list", "http:get"): 1,
        ("fs:read", "json:parse"): 1,
        ("http:get", "json:parse"): 1,
    }


def test_repeated_pairs_are_counted() -> None:
    calls = [tool_call(tool, at, at + 1) for at, tool in enumerate(["a:x", "b:y"] * 3)]
    assert _edges(*calls) == {("a:x", "b:y"): 3, ("b:y", "a:x"): 2}


def test_a_tool_has_no_edge_to_itself_but_separates_others() -> None:
    assert _edges(
        tool_call("a:x", 0, 1),
        tool_call("b:y", 1, 2),
        tool_call("b:y", 2, 3),
        tool_call("c:z", 3, 4),
    ) == {
        ("a:x", "b:y"): 1,
        ("b:y", "c:z"): 1,
    }


def test_calls_with_equal_times_keep_their_start_order() -> None:
    assert _edges(tool_call("a:x", 7, 7), tool_call("b:y", 7, 7)) == {("a:x", "b:y"): 1}


def test_the_order_of_the_input_does_not_matter() -> None:
    assert _edges(tool_call("b:y", 5, 6), tool_call("a:x", 0, 1)) == {("a:x", "b:y"): 1}


@given(CALLS)
def test_edges_are_exactly_the_orderings_with_nothing_between(calls: list[TaskResult]) -> None:
    in_order = sorted(calls, key=lambda known: known.started_at)
    before = {
        (i, j)
        for i, first in enumerate(in_order)
        for j, second in enumerate(in_order)
        if i < j and first.started_at + first.duration_ms <= second.started_at
    }
    covers = {
        (i, j)
        for i, j in before
        if not any((i, k) in before and (k, j) in before for k in range(len(in_order)))
    }
    expected: dict[tuple[str, str], int] = {}
    for i, j in covers:
        pair = (in_order[i].tool, in_order[j].tool)
        if pair[0] != pair[1]:
            expected[pair] = expected.get(pair, 0) + 1
    assert _edges(*calls) == expected


B, C = "bb" * 32, "cc" * 32


def _called(*runs: RunFinished) -> list[tuple[str, str, int]]:
    """The published calls, by the first letter of each code hash."""
    letters = {ids.capability_id(SCOPE, code): code[0] for code in (CODE_HASH, B, C)}
    lessons = {run.event_id: [learn(Experience(), run, TdRule())] for run in runs}
    (observed,) = (
        each
        for messages in messages_of(lessons).values()
        for each in messages
        if isinstance(each, EdgesObserved)
    )
    assert observed.event_id == ids.effect_id(runs[-1].event_id, "edges-observed")
    return [
        (letters[call.from_capability_id], letters[call.to_capability_id], call.count)
        for call in observed.calls
    ]


def _nesting(*, times: int = 1) -> RunFinished:
    """A run that calls B some times, which calls C each time."""
    run = finished_run()
    of_b = [nested_run(run.trace_id, B, occurrence=at) for at in range(times)]
    of_c = [nested_run(each.trace_id, C) for each in of_b]
    return run.model_copy(update={"nested": (*of_b, *of_c)})


def test_a_nested_call_is_one_of_its_direct_caller() -> None:
    assert sorted(_called(_nesting())) == [("a", "b", 1), ("b", "c", 1)]


def test_calls_are_counted_once_for_each_run() -> None:
    assert sorted(_called(_nesting(times=3), _nesting())) == [("a", "b", 2), ("b", "c", 2)]


def test_calls_of_itself_and_of_an_unknown_caller_are_left_out() -> None:
    run = finished_run()
    own, stray = nested_run(run.trace_id, CODE_HASH), nested_run(uuid4(), B)
    assert observed_calls(run.model_copy(update={"nested": (own, stray)})) == frozenset()


def test_a_dry_run_shows_no_calls() -> None:
    dry = _nesting().model_copy(update={"dry_run": True})
    lessons = {dry.event_id: [learn(Experience(), dry, TdRule())]}
    assert messages_of(lessons) == {dry.event_id: []}
