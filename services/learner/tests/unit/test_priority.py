"""Priorities: the specified cases, the addition for unusual durations, the bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.capability import PathStats
from pml_learner.domain.priority import priority


def _known(success_rate: float, mean_duration_ms: float = 100.0) -> PathStats:
    return PathStats(
        path=("n1",), count=9, success_rate=success_rate, mean_duration_ms=mean_duration_ms
    )


def test_a_new_path_has_the_highest_priority() -> None:
    assert priority(None, success=True, duration_ms=10.0) == 1.0


def test_an_unexpected_failure_has_a_high_priority() -> None:
    assert priority(_known(0.95), success=False, duration_ms=100.0) == pytest.approx(0.95)


def test_an_expected_success_has_a_low_priority() -> None:
    assert priority(_known(0.95), success=True, duration_ms=100.0) == pytest.approx(0.05)


@pytest.mark.parametrize("duration_ms", [49.0, 151.0])
def test_a_duration_off_by_more_than_half_of_the_mean_adds_a_fifth(duration_ms: float) -> None:
    assert priority(_known(0.95), success=True, duration_ms=duration_ms) == pytest.approx(0.25)


@pytest.mark.parametrize("duration_ms", [50.0, 150.0])
def test_a_duration_off_by_half_of_the_mean_adds_nothing(duration_ms: float) -> None:
    assert priority(_known(0.95), success=True, duration_ms=duration_ms) == pytest.approx(0.05)


def test_without_a_mean_no_duration_is_unusual() -> None:
    assert priority(_known(0.9, 0.0), success=True, duration_ms=9.0) == pytest.approx(0.1)


def test_the_sum_is_capped() -> None:
    assert priority(_known(0.95), success=False, duration_ms=900.0) == 1.0


@given(st.floats(0, 1), st.floats(0, 1e9), st.booleans(), st.floats(0, 1e9))
def test_a_priority_lies_between_0_and_1(
    rate: float, mean: float, success: bool, duration_ms: float
) -> None:
    assert 0.0 <= priority(_known(rate, mean), success=success, duration_ms=duration_ms) <= 1.0
