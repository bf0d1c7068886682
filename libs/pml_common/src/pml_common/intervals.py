"""The order of calls by their times: which followed which, and which were parallel."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

Interval = tuple[float, float]
"""Start and end; an end before the start counts as the start."""


def consecutive(intervals: Sequence[Interval]) -> Iterator[tuple[int, int]]:
    """Yield the positions of pairs of which the second began when the first had ended, and no third
    lies between them. Those that overlap, or begin at the same time, are parallel and form no pair;
    the order of the input does not matter."""
    order = sorted(range(len(intervals)), key=lambda at: intervals[at])
    starts = [intervals[at][0] for at in order]
    ends = [max(intervals[at]) for at in order]
    for place, one in enumerate(order):
        first_end = ending = float("inf")
        begin = max(bisect_left(starts, ends[place]), bisect_right(starts, starts[place]))
        for other in range(begin, len(order)):
            if starts[other] != starts[other - 1]:
                first_end = ending
            if starts[other] >= first_end:
                break
            yield one, order[other]
            ending = min(ending, ends[other])


def overlap(one: Interval, other: Interval) -> bool:
    """Whether two intervals are parallel: neither began when the other had ended."""
    first, second = sorted((one, other))
    return first[0] == second[0] or second[0] < max(first)
