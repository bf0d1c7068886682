"""The fold: bounds, sums, and what is kept of too much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.trace import BranchDecision
from pml_learner.domain.outcome import CallEnd, Outcome
from pml_learner.domain.state import (
    MAX_NODES,
    MAX_OUTCOMES,
    MAX_PATH_NODES,
    MAX_PATHS,
    learning_of,
    path_stats,
    usage_of,
)
from pml_learner.domain.stored_state import dumped, loaded
from services.learner.tests.support.outcomes import HOUR, outcome, taught

OUTCOMES = st.builds(
    Outcome,
    path=st.lists(st.sampled_from(["n1", "d1", "n2", "n3"]), max_size=4).map(tuple),
    decisions=st.lists(
        st.builds(
            BranchDecision,
            node_id=st.sampled_from(["d1", "d2"]),
            outcome=st.sampled_from(["true", "false", "default"]),
            times=st.integers(1, 3),
        ),
        max_size=4,
    ),
    calls=st.lists(
        st.builds(
            CallEnd,
            node_id=st.sampled_from(["n1", "n2"]),
            success=st.booleans(),
            duration_ms=st.floats(0, 1e6),
        ),
        max_size=3,
    ),
    success=st.booleans(),
    fault=st.sampled_from([None, "caller", "environment", "capability"]),
    duration_ms=st.floats(0, 1e9),
    principal=st.sampled_from([f"p{number}" for number in range(11)]),
    hour=st.integers(HOUR, HOUR + 9),
)
RUNS = st.lists(OUTCOMES, max_size=40)


@given(RUNS)
def test_values_stay_within_their_intervals_and_counts_add_up(runs: list[Outcome]) -> None:
    state = taught(runs)
    judged = [run for run in runs if run.fault not in ("caller", "environment")]
    usage, learning = usage_of(state), learning_of(state)
    assert (usage.count, usage.judged) == (len(runs), len(judged))
    assert sum(stats.count for stats in learning.paths) == len(judged)
    decided = sum(each.count for d in learning.decision_stats for each in d.outcomes.values())
    assert decided == sum(each.times for run in judged for each in run.decisions)
    assert sum(stats.count for stats in learning.node_stats) == sum(
        len(run.calls) for run in judged
    )
    told = [
        *learning.paths,
        *learning.node_stats,
        *(each for d in learning.decision_stats for each in d.outcomes.values()),
    ]
    for stats in told:
        assert 0.0 <= (stats.low or 0.0) <= stats.success_rate <= (stats.high or 0.0) <= 1.0
    assert learning.dominant_path in {stats.path for stats in learning.paths} or not judged


@given(RUNS)
def test_a_state_is_read_as_it_was_stored(runs: list[Outcome]) -> None:
    state = taught(runs)
    assert loaded(dumped(state)) == state


@given(RUNS)
def test_a_mean_duration_lies_among_the_durations_observed(runs: list[Outcome]) -> None:
    for stats in learning_of(taught(runs)).paths:
        seen = [
            run.duration_ms
            for run in runs
            if run.path == stats.path and run.fault not in ("caller", "environment")
        ]
        tolerance = 1e-9 * (1.0 + max(seen))
        assert min(seen) - tolerance <= stats.mean_duration_ms <= max(seen) + tolerance


@given(RUNS, OUTCOMES)
def test_a_run_changes_no_other_path(runs: list[Outcome], last: Outcome) -> None:
    before = taught(runs)
    after = taught([last], before)
    for path in before.paths:
        if path != last.path:
            assert path_stats(after, path) == path_stats(before, path)


def test_of_too_many_paths_those_of_fewest_runs_are_dropped_oldest_first() -> None:
    new = [outcome((f"n{i}",)) for i in range(MAX_PATHS + 5)]
    often = [outcome(("often",))] * 2
    kept = [stats.path[0] for stats in learning_of(taught([new[0], *often, *new])).paths]
    assert kept == ["n0", "often", *(f"n{i}" for i in range(7, MAX_PATHS + 5))]


def test_long_paths_leave_room_for_fewer() -> None:
    runs = [outcome((f"n{run}",) * (MAX_PATH_NODES // 2)) for run in range(6)]
    learning = learning_of(taught(runs))
    assert sum(len(stats.path) for stats in learning.paths) <= MAX_PATH_NODES
    assert learning.paths[-1].path == runs[-1].path
    endless = outcome(("n1",) * (MAX_PATH_NODES + 1))
    assert [stats.path for stats in learning_of(taught([*runs, endless])).paths] == [endless.path]


def test_of_too_many_outcomes_and_nodes_the_new_and_the_frequent_are_kept() -> None:
    often = [BranchDecision(node_id="d1", outcome="often", times=9)]
    call = [CallEnd("often", True, 1.0)] * 9
    runs = [outcome(decisions=often, calls=call)]
    for number in range(MAX_OUTCOMES + 3):
        new = [BranchDecision(node_id="d1", outcome=f"o{number}")]
        runs.append(outcome(decisions=new, calls=[CallEnd(f"n{number}", True, 1.0)]))
    learning = learning_of(taught(runs))
    (decision,) = learning.decision_stats
    assert len(decision.outcomes) == MAX_OUTCOMES
    assert {"often", f"o{MAX_OUTCOMES + 2}"} <= decision.outcomes.keys()
    nodes = [stats.node_id for stats in learning.node_stats]
    assert len(nodes) == MAX_NODES
    assert {"often", f"n{MAX_OUTCOMES + 2}"} <= set(nodes)


def test_a_node_is_judged_by_the_ends_of_its_calls_whatever_became_of_the_run() -> None:
    calls = [CallEnd("n1", True, 10.0), CallEnd("n1", False, 20.0), CallEnd("n2", True, 1.0)]
    first, second = learning_of(taught([outcome(calls=calls)])).node_stats
    assert (first.node_id, first.count, first.success_rate) == ("n1", 2, pytest.approx(0.9))
    assert first.mean_duration_ms == pytest.approx(11.0)
    assert (second.node_id, second.count, second.success_rate) == ("n2", 1, 1.0)
    again = taught([outcome(calls=calls[1:2])], taught([outcome(calls=calls)]))
    assert again.nodes["n1"].estimate.seen == 3
    assert again.nodes["n1"].mean_duration_ms == pytest.approx(11.9)
