"""The order of calls by their times."""

from hypothesis import given
from hypothesis import strategies as st

from pml_common.intervals import Interval, consecutive, overlap

INTERVALS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(-2, 8)).map(lambda each: (each[0], sum(each))),
    max_size=14,
)


def test_parallel_intervals_are_all_followed_by_the_next() -> None:
    assert set(consecutive([(0, 2), (3, 9), (4, 6), (10, 11)])) == {(0, 1), (0, 2), (1, 3), (2, 3)}


def test_intervals_that_begin_together_are_parallel() -> None:
    assert list(consecutive([(7, 7), (7, 7), (7, 9)])) == []
    assert overlap((7, 7), (7, 9))
    assert overlap((0, 5), (4, 9))
    assert not overlap((4, 9), (0, 4))


def test_those_that_begin_together_both_follow() -> None:
    assert set(consecutive([(0, 1), (2, 3), (2, 9)])) == {(0, 1), (0, 2)}


@given(INTERVALS)
def test_pairs_are_the_orderings_with_nothing_between(intervals: list[Interval]) -> None:
    places = range(len(intervals))
    before = {
        (i, j)
        for i in places
        for j in places
        if not overlap(intervals[i], intervals[j]) and intervals[i] < intervals[j]
    }
    covers = {
        (i, j) for i, j in before if not any((i, k) in before and (k, j) in before for k in places)
    }
    found = list(consecutive(intervals))
    assert sorted(found) == sorted(covers)
