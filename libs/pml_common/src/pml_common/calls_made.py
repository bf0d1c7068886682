"""A run's tool calls so far, as text for people and agents."""

from collections import Counter
from collections.abc import Sequence

from pml_common.contracts.trace import TaskResult, ToolEnd, ToolStart, TraceEvent


def calls_made(calls: Sequence[TaskResult]) -> str:
    """Describe calls: `It has called fs:read (2 times), fs:stat.`; unknown outcomes apart."""
    ended = [call.tool for call in calls if not _is_open(call)]
    return _told(ended, [call.tool for call in calls if _is_open(call)])


def calls_recorded(entries: Sequence[TraceEvent]) -> str:
    """Describe the calls of a journal, complete or not: an end without its start counts."""
    ends = [entry for entry in entries if isinstance(entry, ToolEnd)]
    known = {end.trace_id for end in ends if not _is_open(end)}
    starts = [entry for entry in entries if isinstance(entry, ToolStart)]
    return _told(
        [end.tool for end in ends if end.trace_id in known],
        [start.tool for start in starts if start.trace_id not in known],
    )


def _told(ended: Sequence[str], unknown: Sequence[str]) -> str:
    told = [f"It has called {_counted(ended)}."] if ended else []
    if unknown:
        told.append(f"The outcome of these calls is unknown: {_counted(unknown)}.")
    return " ".join(told) or "It has called nothing."


def _is_open(call: TaskResult | ToolEnd) -> bool:
    return call.error is not None and call.error.kind == "outcome_unknown"


def _counted(tools: Sequence[str]) -> str:
    times = Counter(tools)
    return ", ".join(f"{tool} ({n} times)" if n > 1 else tool for tool, n in times.items())
