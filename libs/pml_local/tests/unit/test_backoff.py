"""Delays between restarts of a crashed part."""

from hypothesis import given
from hypothesis import strategies as st

from pml_local.supervised import LONGEST_DELAY, STEADY_SECONDS, Failures


def test_the_delay_doubles_from_a_tenth_of_a_second() -> None:
    assert [Failures(count).delay for count in (1, 2, 3, 4)] == [0.1, 0.2, 0.4, 0.8]


@given(st.integers(min_value=1, max_value=10**9))
def test_the_delay_never_shrinks_with_more_failures_and_is_bounded(count: int) -> None:
    assert Failures(count).delay <= Failures(count + 1).delay <= LONGEST_DELAY


@given(st.lists(st.floats(min_value=0, max_value=STEADY_SECONDS - 0.001), max_size=20))
def test_failures_in_a_row_are_counted(runs: list[float]) -> None:
    failures = Failures()
    for seconds in runs:
        failures = failures.after_running(seconds)
    assert failures.count == len(runs)


def test_what_fails_for_hours_is_tried_once_a_minute() -> None:
    assert Failures(12).delay == Failures(100_000).delay == LONGEST_DELAY == 60.0


def test_running_steadily_forgives_earlier_failures() -> None:
    assert Failures(7).after_running(STEADY_SECONDS) == Failures(1)
