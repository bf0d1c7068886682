"""The executed path: a shortened path of the run that is still a path through the structure."""

from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.trace import DecisionTaken, LoopPassed, ToolStart, TraceEvent
from pml_executor.domain.executed_path import MAX_LENGTH, Step, executed_path, folded

ROOT = UUID(int=1)


def steps(text: str) -> list[Step]:
    """Parse steps; `l…` begins a round."""
    return [Step(word, word.startswith("l")) for word in text.split()]


def nodes(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@pytest.mark.parametrize(
    ("reported", "path"),
    [
        ("", ""),
        ("n1 d1 n2", "n1 d1 n2"),
        ("l1 n1 l1 n1 l1 n1", "l1 n1"),
        ("l1 l1 l1 n1", "l1 n1"),
        ("n1 l1 n2 l1 n2 n3", "n1 l1 n2 n3"),
        ("l1 d1 n1 l1 d1 n2 l1 d1 n1 l1 d1 n2 n3", "l1 d1 n1 l1 d1 n2 n3"),
        ("l1 n1 l1 n2 l1 n1 n3", "l1 n2 l1 n1 n3"),
        ("l1 l2 n1 l2 n1 n2 l1 l2 n1 n2 l1 n2 n3", "l1 l2 n1 n2 l1 n2 n3"),
        ("l1 n1 l1 n1 l2 n2 l2 n2 n3", "l1 n1 l2 n2 n3"),
        ("l1 n1 l1 n1 l1 n1 n2 n2 n2", "l1 n1 n2"),
        ("n1 n1 n1 n2 n2 n2 n3", "n1 n2 n3"),
        ("n1 n1 n2 n1 n2 n2 n3", "n1 n2 n3"),
    ],
    ids=[
        "nothing",
        "a straight line",
        "equal rounds",
        "rounds of nothing",
        "what follows a loop begins in its last round",
        "two kinds of rounds, the last of each",
        "where a round was gone through first, but the last is last",
        "inner loops first",
        "one loop after another",
        "recursion that comes back",
        "strands in step",
        "strands out of step",
    ],
)
def test_a_round_is_told_once(reported: str, path: str) -> None:
    assert folded(steps(reported)) == steps(path)


REPORTS = st.lists(st.sampled_from(steps("n1 n2 n3 d1 d2 l1 l2 l3")), max_size=40)
BETWEEN_ROUNDS = st.lists(st.sampled_from(steps("n1 n2 n3 d1 d2")), unique=True, max_size=3)
ONE_STRAND = st.lists(
    st.tuples(st.sampled_from(steps("l1 l2 l3")), BETWEEN_ROUNDS), max_size=20
).map(lambda rounds: [step for begin, others in rounds for step in (begin, *others)])
"""Reports of one strand: nothing repeats before a round of a loop has begun."""


@given(BETWEEN_ROUNDS, ONE_STRAND)
def test_of_one_strand_only_whole_rounds_are_left_out(
    before: list[Step], rounds: list[Step]
) -> None:
    reported = [*before, *rounds]
    path = folded(reported)

    assert set(path) == set(reported)
    assert set(pairwise(path)) <= set(pairwise(reported))
    assert path[:1] == reported[:1]
    assert path[-1:] == reported[-1:]


@given(REPORTS)
def test_whatever_is_reported_what_is_folded_stays_so(reported: list[Step]) -> None:
    path = folded(reported)
    assert set(path) == set(reported)
    assert folded(path) == path


@given(REPORTS, st.integers(1, 3))
def test_how_often_a_loop_repeats_itself_does_not_matter(body: list[Step], times: int) -> None:
    inner = [step for step in body if step.node_id != "l1"]
    once = [Step("l1", begins=True), *inner]
    assert folded(once * times) == folded(once)


def entry(step: Step, ts: float = 0.0, counted: int = 0) -> TraceEvent:
    if step.begins:
        return LoopPassed(trace_id=ROOT, ts=ts, node_id=step.node_id, iterations=1, counted=counted)
    if step.node_id.startswith("d"):
        return DecisionTaken(
            trace_id=ROOT, ts=ts, node_id=step.node_id, outcome="true", counted=counted
        )
    return ToolStart(
        trace_id=ROOT, ts=ts, node_id=step.node_id, tool="api:a", args={}, args_hash=""
    )


def test_a_path_is_made_of_calls_decisions_and_rounds() -> None:
    entries = [entry(step) for step in steps("n1 l1 d1 n2 l1 d1 n2 l1 d1 n3")]
    assert executed_path(entries) == nodes("n1 l1 d1 n2 l1 d1 n3")


def test_where_reports_are_only_counted_each_node_stands_at_its_first_time() -> None:
    before = [entry(step) for step in steps("l1 d1 l1 d1 n1")]
    counted = [entry(step, counted=1) for step in steps("l1 d1 d9")]
    after = [entry(step) for step in steps("n2 d1 n1 l2 n2 d3")]
    assert executed_path([*before, *counted, *after]) == nodes("l1 d1 n1 d9 n2 l2 d3")


def test_a_long_path_ends_with_each_other_node_once() -> None:
    # No two rounds alike: each passes another choice of ten nodes.
    rounds = [
        ["l1", *(f"n{bit}" for bit in range(10) if number >> bit & 1)] for number in range(1024)
    ]
    reported = [Step(name, name == "l1") for each in rounds for name in each]
    tail = steps("n99 l7 n98 n99 n98")
    path = executed_path([entry(step) for step in [*reported, *tail]])

    assert path[:MAX_LENGTH] == tuple(step.node_id for step in folded(reported))[:MAX_LENGTH]
    assert path[MAX_LENGTH:] == ("n8", "n9", "n99", "l7", "n98")
