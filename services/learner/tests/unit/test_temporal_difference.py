"""The TD rule: bounds, convergence, sums, the dominant path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.capability import Learning, PathStats
from pml_common.contracts.trace import BranchDecision
from pml_learner.domain.temporal_difference import (
    MAX_PATH_NODES,
    MAX_PATHS,
    TdRule,
    dominant_path,
    path_stats,
    update,
)

PATHS = st.lists(st.sampled_from(["n1", "d1", "n2", "n3"]), max_size=4).map(tuple)
DECISIONS = st.lists(
    st.builds(
        BranchDecision,
        node_id=st.sampled_from(["d1", "d2"]),
        outcome=st.sampled_from(["true", "false", "default"]),
    ),
    max_size=4,
)
RUNS = st.lists(
    st.tuples(PATHS, DECISIONS, st.booleans(), st.floats(0, 1e9, allow_nan=False)), max_size=40
)
Run = tuple[tuple[str, ...], list[BranchDecision], bool, float]


def _learned(runs: list[Run], rule: TdRule | None = None) -> Learning:
    learning = Learning()
    for path, decisions, success, duration_ms in runs:
        learning = update(
            learning,
            path,
            decisions,
            success=success,
            duration_ms=duration_ms,
            rule=rule or TdRule(),
        )
    return learning


def _stats(path: tuple[str, ...], count: int, success_rate: float) -> PathStats:
    return PathStats(path=path, count=count, success_rate=success_rate, mean_duration_ms=1.0)


def test_a_new_path_starts_halfway_and_takes_one_step() -> None:
    (stats,) = _learned([(("n1",), [], True, 40.0)]).paths
    assert stats.success_rate == pytest.approx(0.55)
    assert stats.count == 1


def test_the_first_duration_initialises_the_mean_and_later_ones_move_it_by_a_tenth() -> None:
    first = (("n1",), [BranchDecision(node_id="d1", outcome="true")], True, 40.0)
    assert _learned([first]).paths[0].mean_duration_ms == 40.0
    assert _learned([first, (("n1",), [], True, 140.0)]).paths[0].mean_duration_ms == 50.0


def test_decision_outcomes_learn_by_the_same_rule() -> None:
    yes, no = (BranchDecision(node_id="d1", outcome=o) for o in ("true", "false"))
    learning = _learned(
        [(("n1",), [yes], True, 1.0), (("n1",), [yes], True, 1.0), (("n2",), [no], False, 1.0)]
    )
    (stats,) = learning.decision_stats
    assert stats.node_id == "d1"
    assert stats.outcomes["true"].count == 2
    assert stats.outcomes["true"].success_rate == pytest.approx(0.595)
    assert stats.outcomes["false"].count == 1
    assert stats.outcomes["false"].success_rate == pytest.approx(0.45)


def test_a_repeated_decision_learns_as_much_as_one_by_one() -> None:
    once = [BranchDecision(node_id="d1", outcome="true")]
    in_a_row = [BranchDecision(node_id="d1", outcome="true", times=7)]
    (one_by_one,) = _learned([(("n1",), once * 7, True, 1.0)]).decision_stats
    (together,) = _learned([(("n1",), in_a_row, True, 1.0)]).decision_stats
    assert together.outcomes["true"].count == one_by_one.outcomes["true"].count == 7
    assert together.outcomes["true"].success_rate == pytest.approx(
        one_by_one.outcomes["true"].success_rate
    )


def test_of_too_many_paths_those_of_fewest_runs_are_dropped_oldest_first() -> None:
    often: Run = (("often",), [], True, 1.0)
    new: list[Run] = [((f"n{i}",), [], True, 1.0) for i in range(MAX_PATHS + 5)]
    kept = [stats.path[0] for stats in _learned([new[0], often, often, *new]).paths]
    assert kept == ["n0", "often", *(f"n{i}" for i in range(7, MAX_PATHS + 5))]


def test_long_paths_leave_room_for_fewer() -> None:
    length = MAX_PATH_NODES // 2
    runs: list[Run] = [((f"n{run}",) * length, [], True, 1.0) for run in range(6)]
    taught = _learned(runs)
    assert sum(len(stats.path) for stats in taught.paths) <= MAX_PATH_NODES
    assert taught.paths[-1].path == runs[-1][0]
    endless: Run = (("n1",) * (MAX_PATH_NODES + 1), [], True, 1.0)
    assert [stats.path for stats in _learned([*runs, endless]).paths] == [endless[0]]


def test_nothing_learned_has_no_dominant_path() -> None:
    assert dominant_path([]) == ()


def test_before_three_runs_the_first_path_seen_dominates() -> None:
    assert dominant_path([_stats(("a",), 1, 0.1), _stats(("b",), 2, 0.9)]) == ("a",)


def test_from_three_runs_on_success_times_runs_decides() -> None:
    often = _stats(("often",), 10, 0.5)
    rarely = _stats(("rarely",), 4, 0.9)
    seen_first = _stats(("seen first",), 2, 1.0)
    assert dominant_path([seen_first, rarely, often]) == ("often",)


def test_of_equal_paths_the_one_seen_first_dominates() -> None:
    assert dominant_path([_stats(("a",), 3, 0.8), _stats(("b",), 3, 0.8)]) == ("a",)


@given(RUNS)
def test_values_stay_within_bounds_and_counts_add_up(runs: list[Run]) -> None:
    learning = _learned(runs)
    assert sum(stats.count for stats in learning.paths) == len(runs)
    assert len({stats.path for stats in learning.paths}) == len(learning.paths)
    decided = sum(o.count for d in learning.decision_stats for o in d.outcomes.values())
    assert decided == sum(len(decisions) for _, decisions, _, _ in runs)
    assert all(0.0 <= stats.success_rate <= 1.0 for stats in learning.paths)
    assert learning.dominant_path in {stats.path for stats in learning.paths} or not runs


@given(RUNS)
def test_a_mean_duration_lies_among_the_durations_observed(runs: list[Run]) -> None:
    for stats in _learned(runs).paths:
        seen = [duration for path, _, _, duration in runs if path == stats.path]
        tolerance = 1e-9 * (1.0 + max(seen))
        assert min(seen) - tolerance <= stats.mean_duration_ms <= max(seen) + tolerance


@given(st.booleans(), st.integers(30, 120))
def test_steady_outcomes_are_converged_on_at_the_rate_of_alpha(success: bool, runs: int) -> None:
    (stats,) = _learned([(("n1",), [], success, 1.0)] * runs).paths
    assert abs(stats.success_rate - float(success)) == pytest.approx(0.5 * 0.9**runs)


@given(RUNS, PATHS)
def test_a_run_changes_no_other_path(runs: list[Run], path: tuple[str, ...]) -> None:
    before = _learned(runs)
    after = _learned([*runs, (path, [], True, 1.0)])
    for stats in before.paths:
        if stats.path != path:
            assert path_stats(after, stats.path) == stats
