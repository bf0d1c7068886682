"""Edges between tools, derived from the times of one run's calls."""

from collections import Counter
from collections.abc import Iterator, Sequence

from pml_common.contracts.learner import ObservedEdge
from pml_common.contracts.trace import TaskResult


def observed_edges(calls: Sequence[TaskResult]) -> tuple[ObservedEdge, ...]:
    """Return `sequence` edges between tools, by name; a tool has no edge to itself.

    `calls` are in start order, which decides between equal times.
    """
    counts = Counter(
        (earlier.tool, later.tool)
        for earlier, later in _consecutive(sorted(calls, key=lambda call: call.started_at))
        if earlier.tool != later.tool
    )
    return tuple(
        ObservedEdge(from_tool=from_tool, to_tool=to_tool, count=count)
        for (from_tool, to_tool), count in sorted(counts.items())
    )


def _consecutive(calls: Sequence[TaskResult]) -> Iterator[tuple[TaskResult, TaskResult]]:
    """Yield pairs whose second call started after the first ended, with no call between them.

    Calls with overlapping intervals are parallel and form no pair.
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
