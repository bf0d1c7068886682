"""Attacks on learned values: the most that one principal and one burst can move (E6).

The numbers are those that docs/learning.md states.
"""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.learner import Feedback
from pml_learner.domain.opinions import Opinion, valued
from pml_learner.domain.outcome import Outcome
from pml_learner.domain.state import State, usage_of
from pml_learner.domain.temporal_difference import HOURLY, KEPT, MOST
from services.learner.tests.support.outcomes import HOUR, outcome, taught


def _history(principals: int, *, success: bool, hours: int = 4) -> State:
    """Runs of several principals, five in each of so many hours."""
    return taught(
        outcome(success=success, principal=f"honest-{who}", hour=HOUR + hour)
        for hour in range(hours)
        for who in range(principals)
        for _ in range(HOURLY)
    )


def _value(state: State) -> float:
    value = usage_of(state).value
    assert value is not None
    return value


def _attack(runs: int, *, success: bool, hour: int = HOUR + 9) -> list[Outcome]:
    return [outcome(success=success, principal="mallory", hour=hour)] * runs


@pytest.mark.parametrize("good", [True, False])
@pytest.mark.parametrize("honest", [1, 3, KEPT])
@pytest.mark.parametrize("runs", [5, 1_000])
def test_a_burst_moves_a_value_by_at_most_5_of_5_and_the_weight_of_others(
    good: bool, honest: int, runs: int
) -> None:
    before = _history(honest, success=good)
    attacked = taught(_attack(runs, success=not good), before)
    moved = abs(_value(attacked) - _value(before))
    assert moved == pytest.approx(HOURLY / (HOURLY + MOST * honest))
    assert moved <= 0.2


@pytest.mark.parametrize("good", [True, False])
@pytest.mark.parametrize("honest", [1, 3, KEPT])
def test_a_principal_moves_a_value_by_at_most_its_share_however_long_it_goes_on(
    good: bool, honest: int
) -> None:
    before = _history(honest, success=good)
    patient = [
        run for hour in range(100) for run in _attack(50, success=not good, hour=HOUR + 9 + hour)
    ]
    moved = abs(_value(taught(patient, before)) - _value(before))
    assert moved == pytest.approx(MOST / (MOST + MOST * honest))


def test_a_trusted_principal_that_turns_moves_its_share_and_no_more() -> None:
    before = _history(4, success=True)
    turned = [outcome(success=False, principal="honest-0", hour=HOUR + 9)] * 1_000
    assert _value(taught(turned, before)) == pytest.approx(0.75)


def test_principals_beyond_those_kept_share_one_voice() -> None:
    before = _history(KEPT, success=True)
    crowd = [
        outcome(success=False, principal=f"mallory-{who}", hour=HOUR + 9 + hour)
        for hour in range(20)
        for who in range(200)
    ]
    moved = 1.0 - _value(taught(crowd, before))
    assert moved == pytest.approx(MOST / (MOST + MOST * KEPT))


def test_an_attack_on_a_single_runs_experience_is_bounded_too() -> None:
    before = taught([outcome(principal="honest", hour=HOUR)])
    assert _value(taught(_attack(1_000, success=False), before)) == pytest.approx(1 / 6)


@pytest.mark.parametrize("good", [True, False])
@pytest.mark.parametrize(("hours", "moved"), [(1, 5 / (5 + 3 * 20)), (50, 20 / (20 + 3 * 20))])
def test_feedback_moves_a_value_no_further_than_runs_do(
    good: bool, hours: int, moved: float
) -> None:
    honest = [
        Opinion(f"honest-{who}", good, HOUR + hour)
        for hour in range(4)
        for who in range(3)
        for _ in range(HOURLY)
    ]
    attack = [Opinion("mallory", not good, HOUR + 9 + number % hours) for number in range(100)]
    attack.sort(key=lambda said: said.hour)
    blank = Feedback(capability_id=UUID(int=1), useful=0, not_useful=0)
    before, after = valued(blank, honest), valued(blank, [*honest, *attack])
    assert before.value is not None
    assert after.value is not None
    assert abs(after.value - before.value) == pytest.approx(moved)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=60))
def test_whatever_a_principal_does_and_when_it_says_at_most_its_share(
    runs: list[tuple[bool, int]],
) -> None:
    before = _history(3, success=True)
    hours = len({hour for _, hour in runs})
    attack = [
        outcome(success=success, principal="mallory", hour=HOUR + hour) for success, hour in runs
    ]
    said = min(MOST, HOURLY * hours)
    most = said / (said + 3 * MOST) if said else 0.0
    assert 1.0 - _value(taught(attack, before)) <= most + 1e-9
