"""Relations that runs show: from callers to what they called, and by time between that."""

import random
from collections import Counter
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import COHORTS
from pml_common.contracts.trace import TaskResult
from pml_learner.domain.batch import messages_of
from pml_learner.domain.edge_messages import cohort_of
from pml_learner.domain.edges import relations_of
from pml_learner.domain.lesson import Experience, learn
from pml_learner.domain.temporal_difference import TdRule
from services.learner.tests.support.builders import (
    CODE_HASH,
    ELSEWHERE,
    SCOPE,
    finished_run,
    nested_run,
    tool_call,
)
from services.learner.tests.support.relations import (
    LETTERS,
    B,
    C,
    call_of,
    counts_of,
    edges_observed,
    nesting,
)

TIMES = st.lists(
    st.tuples(st.sampled_from(["a:a", "b:b", "c:c"]), st.integers(0, 30), st.integers(0, 10)),
    max_size=12,
)


def _name(node: str | UUID) -> str:
    return LETTERS[node] if isinstance(node, UUID) else node


def _shown(run: RunFinished) -> set[tuple[str, str]]:
    """The sequences that a run shows."""
    return {
        (_name(each.from_), _name(each.to)) for each in relations_of(run) if each.type == "sequence"
    }


def _contained(run: RunFinished) -> set[tuple[str, str]]:
    """The calls that a run shows."""
    return {
        (_name(each.from_), _name(each.to)) for each in relations_of(run) if each.type == "contains"
    }


def _edges(*calls: TaskResult) -> set[tuple[str, str]]:
    return _shown(finished_run(calls=calls))


def test_no_calls_show_no_relations() -> None:
    assert relations_of(finished_run()) == frozenset()


def test_each_call_leads_to_the_next_and_not_to_the_one_after() -> None:
    assert _edges(
        tool_call("fs:stat", 0, 5), tool_call("fs:create", 5, 8), tool_call("fs:write", 9, 12)
    ) == {("fs:stat", "fs:create"), ("fs:create", "fs:write")}


def test_overlapping_calls_are_parallel() -> None:
    assert _edges(tool_call("fs:read", 0, 5), tool_call("http:get", 4, 9)) == set()


def test_calls_around_a_parallel_part_are_connected_to_all_of_it() -> None:
    assert _edges(
        tool_call("fs:list", 0, 2),
        tool_call("fs:read", 3, 9),
        tool_call("http:get", 4, 6),
        tool_call("json:parse", 10, 11),
    ) == {
        ("fs:list", "fs:read"),
        ("fs:list", "http:get"),
        ("fs:read", "json:parse"),
        ("http:get", "json:parse"),
    }


def test_a_tool_has_no_edge_to_itself_but_separates_others() -> None:
    assert _edges(
        tool_call("a:x", 0, 1),
        tool_call("b:y", 1, 2),
        tool_call("b:y", 2, 3),
        tool_call("c:z", 3, 4),
    ) == {("a:x", "b:y"), ("b:y", "c:z")}


def test_calls_that_begin_at_the_same_time_are_parallel() -> None:
    assert _edges(tool_call("a:x", 7, 7), tool_call("b:y", 7, 7), tool_call("c:z", 7, 9)) == set()


def test_a_clock_set_back_makes_a_call_of_no_duration() -> None:
    assert _edges(tool_call("a:x", 7, 3), tool_call("b:y", 8, 9)) == {("a:x", "b:y")}


@given(TIMES)
def test_sequences_are_exactly_the_orderings_with_nothing_between(
    times: list[tuple[str, int, int]],
) -> None:
    calls = [(tool, start, start + length) for tool, start, length in times]
    before = {
        (i, j)
        for i, (_, start, end) in enumerate(calls)
        for j, (_, later, _) in enumerate(calls)
        if end <= later and start < later
    }
    covers = {
        (i, j)
        for i, j in before
        if not any((i, k) in before and (k, j) in before for k in range(len(calls)))
    }
    expected = {(calls[i][0], calls[j][0]) for i, j in covers}
    assert _edges(*(tool_call(*each) for each in calls)) == {
        (one, other) for one, other in expected if one != other
    }


@given(TIMES, st.randoms(use_true_random=False))
def test_parallel_calls_are_in_no_sequence_whatever_the_order_of_the_input(
    times: list[tuple[str, int, int]], order: random.Random
) -> None:
    named = [(f"{tool}{at}", start, length) for at, (tool, start, length) in enumerate(times)]
    run = finished_run()
    calls = [tool_call(name, start, start + length) for name, start, length in named[::2]]
    codes = {f"{at:02x}" * 32: each for at, each in enumerate(named[1::2])}
    nested = [
        call_of(code, start, start + length, run.trace_id)
        for code, (_, start, length) in codes.items()
    ]
    spans = {each.tool: (each.started_at, each.duration_ms) for each in calls}
    spans |= {
        str(each.capability.capability_id): (each.started_at, each.duration_ms) for each in nested
    }
    found = relations_of(run.model_copy(update={"task_results": calls, "nested": nested}))
    for each in found:
        if each.type == "sequence":
            (start, length), (later, _) = spans[str(each.from_)], spans[str(each.to)]
            assert start + length <= later
    order.shuffle(calls)
    order.shuffle(nested)
    assert relations_of(run.model_copy(update={"task_results": calls, "nested": nested})) == found


def test_a_capability_contains_the_tools_and_capabilities_that_it_calls_itself() -> None:
    run = finished_run()
    of_b = call_of(B, 10, 20, run.trace_id)
    of_c = call_of(C, 12, 14, of_b.trace_id)
    calls = [
        tool_call("fs:stat", 1, 2),
        tool_call("git:log", 11, 12, parent=of_b.trace_id),
        tool_call("git:log", 13, 14, parent=of_c.trace_id),
    ]
    run = run.model_copy(update={"nested": (of_b, of_c), "task_results": calls})
    assert _contained(run) == {
        ("A", "fs:stat"),
        ("A", "B"),
        ("B", "git:log"),
        ("B", "C"),
        ("C", "git:log"),
    }


def test_a_nested_capability_is_one_step_of_its_caller() -> None:
    run = finished_run()
    of_b, of_c = call_of(B, 10, 20, run.trace_id), call_of(C, 20, 30, run.trace_id)
    calls = [
        tool_call("fs:stat", 1, 2),
        tool_call("git:log", 11, 12, parent=of_b.trace_id),
        tool_call("git:show", 13, 14, parent=of_b.trace_id),
        tool_call("fs:write", 31, 32, parent=run.trace_id),
    ]
    run = run.model_copy(update={"nested": (of_b, of_c), "task_results": calls})
    assert _shown(run) == {
        ("fs:stat", "B"),
        ("git:log", "git:show"),
        ("B", "C"),
        ("C", "fs:write"),
    }


def test_calls_of_itself_and_of_an_unknown_caller_are_left_out() -> None:
    run = finished_run()
    own, stray = nested_run(run.trace_id, CODE_HASH), nested_run(uuid4(), B)
    assert relations_of(run.model_copy(update={"nested": (own, stray)})) == frozenset()


def test_the_message_says_in_how_many_runs_each_relation_was_shown() -> None:
    (message,) = edges_observed(nesting(times=3), nesting())
    assert (message.runs, message.cohort) == (2, cohort_of(SCOPE, "agent-7"))
    assert counts_of([message]) == {
        ("A", "B", "contains"): 2,
        ("B", "C", "contains"): 2,
        ("B", "fs:read", "contains"): 2,
        ("C", "fs:read", "sequence"): 2,
    }


def test_each_cohort_of_principals_has_its_own_message() -> None:
    cohorts = {f"agent-{at}": cohort_of(SCOPE, f"agent-{at}") for at in range(200)}
    assert set(cohorts.values()) == set(range(COHORTS))
    assert [cohort_of(ELSEWHERE, each) for each in cohorts] != list(cohorts.values())
    runs = [nesting(principal=each) for each in cohorts for _ in range(2)]
    messages = edges_observed(*runs)
    assert len(messages) == COHORTS
    assert sum(each.runs for each in messages) == len(runs)
    of_cohort = Counter(cohorts.values())
    assert {each.cohort: each.runs / 2 for each in messages} == of_cohort


def test_a_dry_run_shows_nothing() -> None:
    dry = nesting().model_copy(update={"dry_run": True})
    lessons = {dry.event_id: [learn(Experience(), dry, TdRule())]}
    assert messages_of(lessons) == {dry.event_id: []}
