"""Relations between tools, read from the times of one run's calls (E4)."""

from collections import Counter
from collections.abc import Iterator, Sequence

from pml_common.contracts.learner import ObservedEdge
from pml_common.contracts.trace import TaskResult


def observed_edges(calls: Sequence[TaskResult]) -> tuple[ObservedEdge, ...]:
    """`sequence` edges between tools, by name; a tool has no edge to itself.

    `calls` are in the order they started, as far as the clock cannot tell.
    """
    counts = Counter(
        (earlier.tool, later.tool)
        for earlier, later in _adjacent(sorted(calls, key=lambda call: call.started_at))
        if earlier.tool != later.tool
    )
    return tuple(
        ObservedEdge(from_tool=from_tool, to_tool=to_tool, count=count)
        for (from_tool, to_tool), count in sorted(counts.items())
    )


def _adjacent(calls: Sequence[TaskResult]) -> Iterator[tuple[TaskResult, TaskResult]]:
    """Pairs of which the second started after the first ended, with no call between the two.

    Calls whose intervals overlap are parallel and make no pair.
    """
    for position, earlier in enumerate(calls):
        first_end = float("inf")
        for later in calls[position + 1 :]:
            if later.started_at < _end(earlier):
                continue
            if later.started_at >= first_end:
                break
            yield earlier, later
            first_end = min(first_end, _end(later))


def _end(call: TaskResult) -> float:
    return call.started_at + max(0.0, call.duration_ms)
