"""Every numeric example and criterion of Epic 11 that concerns learning, by its number."""

import json

import pytest

from pml_common.contracts.trace import BranchDecision
from pml_learner.domain.priority import priority
from pml_learner.domain.state import State, learning_of, path_stats, usage_of
from pml_learner.domain.stored_state import dumped, loaded
from services.learner.tests.support.builders import finished_run, tool_call
from services.learner.tests.support.outcomes import outcome, taught

YES = BranchDecision(node_id="d1", outcome="true")
NO = BranchDecision(node_id="d1", outcome="false")


def _steady_at_95_percent() -> State:
    """A path of which 19 of 20 runs succeed, run until its value says so."""
    state = taught(outcome(duration_ms=100.0, success=number % 20 != 7) for number in range(400))
    known = path_stats(state, ("n1",))
    assert known is not None
    assert known.success_rate == pytest.approx(0.95, abs=0.03)
    return state


def test_11_1_results_of_calls_and_of_runs_are_in_the_trace_as_json() -> None:
    run = finished_run(calls=[tool_call("fs:stat", 0, 1)])
    assert json.loads(run.model_dump_json())["result"] == {"size": 3}
    assert "result" in json.loads(run.model_dump_json())["task_results"][0]


def test_11_3_6_a_new_path_has_priority_1() -> None:
    state = taught([outcome(("n1",))] * 5)
    unseen = path_stats(state, ("n1", "n2"))
    assert priority(unseen, success=True, duration_ms=10.0) == 1.0


def test_11_3_7_a_failure_on_a_path_of_95_percent_has_a_priority_of_about_0_95() -> None:
    known = path_stats(_steady_at_95_percent(), ("n1",))
    assert priority(known, success=False, duration_ms=100.0) == pytest.approx(0.95, abs=0.03)


def test_11_3_8_a_success_on_a_path_of_95_percent_has_a_priority_of_about_0_05() -> None:
    known = path_stats(_steady_at_95_percent(), ("n1",))
    assert priority(known, success=True, duration_ms=100.0) == pytest.approx(0.05, abs=0.03)


def test_11_3_an_unusual_duration_adds_0_2_up_to_1() -> None:
    known = path_stats(_steady_at_95_percent(), ("n1",))
    assert priority(known, success=True, duration_ms=151.0) == pytest.approx(0.25, abs=0.03)
    assert priority(known, success=True, duration_ms=150.0) == pytest.approx(0.05, abs=0.03)
    assert priority(known, success=False, duration_ms=900.0) == 1.0


@pytest.mark.parametrize("success", [True, False])
def test_11_3_9_three_runs_of_a_path_converge(success: bool) -> None:
    state = taught([outcome(success=success)] * 3)
    (stats,) = learning_of(state).paths
    assert (stats.count, stats.success_rate) == (3, float(success))
    other = taught([outcome(success=not success)] * 3, state)
    (stats,) = learning_of(other).paths
    steps = 1 - 0.9**3
    assert stats.success_rate == pytest.approx(1 - steps if success else steps)


def test_11_3_9_the_first_run_initialises_value_and_duration_and_later_ones_move_a_tenth() -> None:
    (first,) = learning_of(taught([outcome(duration_ms=40.0)])).paths
    assert (first.success_rate, first.mean_duration_ms) == (1.0, 40.0)
    runs = [outcome(duration_ms=40.0), outcome(success=False, duration_ms=140.0)]
    (second,) = learning_of(taught(runs)).paths
    assert (second.success_rate, second.mean_duration_ms) == (0.9, 50.0)


def test_11_3_10_the_statistics_of_each_decision_are_updated() -> None:
    runs = [outcome(decisions=[YES])] * 2 + [outcome(("n2",), success=False, decisions=[NO])]
    (stats,) = learning_of(taught(runs)).decision_stats
    assert stats.node_id == "d1"
    assert {name: (each.count, each.success_rate) for name, each in stats.outcomes.items()} == {
        "true": (2, 1.0),
        "false": (1, 0.0),
    }


def test_11_3_a_repeated_decision_learns_as_much_as_one_by_one() -> None:
    seven = BranchDecision(node_id="d1", outcome="true", times=7)
    before = taught([outcome(success=False, decisions=[YES])])
    one_by_one = taught([outcome(decisions=[YES] * 7)], before).outcomes["d1", "true"]
    together = taught([outcome(decisions=[seven])], before).outcomes["d1", "true"]
    assert one_by_one.seen == together.seen == 8
    assert one_by_one.value == together.value == pytest.approx(1 - 0.9**7)


def test_11_3_the_dominant_path_has_three_runs_and_the_highest_success_times_count() -> None:
    often = [outcome(("often",), success=number % 2 == 0) for number in range(10)]
    rarely = [outcome(("rarely",))] * 4
    seen_first = [outcome(("first",))] * 2
    assert learning_of(taught([*seen_first, *rarely])).dominant_path == ("rarely",)
    known = learning_of(taught([*seen_first, *rarely, *often]))
    scores = {stats.path: stats.success_rate * stats.count for stats in known.paths}
    assert scores["often",] > scores["rarely",]
    assert known.dominant_path == ("often",)


def test_11_3_before_three_runs_the_first_path_dominates() -> None:
    runs = [outcome(("a",), success=False), outcome(("b",)), outcome(("b",))]
    assert learning_of(taught(runs)).dominant_path == ("a",)
    assert learning_of(State()).dominant_path == ()
    equal = [outcome(("a",)), *[outcome(("b",))] * 3, *[outcome(("a",))] * 2]
    assert learning_of(taught(equal)).dominant_path == ("a",)


def test_11_3_4_what_was_learned_is_stored_and_read_as_it_was() -> None:
    state = taught([outcome(decisions=[YES, NO]), outcome(("n\x00",), success=False)])
    assert loaded(dumped(state)) == state


def test_values_are_told_with_count_and_interval() -> None:
    usage = usage_of(taught([outcome()]))
    assert (usage.count, usage.value, usage.high) == (1, 1.0, 1.0)
    assert usage.low == pytest.approx(1 / (1 + 1.96**2), abs=1e-3)
    assert usage_of(State()).value is None
    (of_ten,) = learning_of(taught([outcome()] * 10)).paths
    (of_many,) = learning_of(taught([outcome()] * 500)).paths
    assert of_ten.low == pytest.approx(10 / (10 + 1.96**2), abs=1e-3)
    assert of_many.low == pytest.approx(19 / (19 + 1.96**2), abs=1e-3)


def test_drift_shows_within_a_stated_number_of_runs() -> None:
    """The numbers that docs/learning.md states, for a capability that one principal runs."""
    state = taught([outcome()] * 200)
    seen = [usage_of(taught([outcome(success=False)] * runs, state)) for runs in range(1, 23)]
    highs = [usage.high for usage in seen]
    before = usage_of(state)
    assert before.low is not None
    halved = next(runs for runs, usage in enumerate(seen, 1) if (usage.value or 0) <= 0.5)
    apart = next(
        runs for runs, high in enumerate(highs, 1) if high is not None and high < before.low
    )
    assert (apart, halved) == (4, 7)
    assert (seen[21].value or 0.0) <= 0.1  # of any change, 90 % shows after 22 runs
