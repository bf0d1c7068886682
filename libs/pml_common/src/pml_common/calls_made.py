"""What a run has done so far, in words for people and agents."""

from collections import Counter
from collections.abc import Sequence

from pml_common.contracts.trace import TaskResult


def calls_made(calls: Sequence[TaskResult]) -> str:
    """`It has called fs:read (2 times), fs:stat.`; what nobody knows the end of is told apart."""
    ended = [call for call in calls if not _is_open(call)]
    unknown = [call for call in calls if _is_open(call)]
    told = f"It has called {_counted(ended)}." if ended else "It has called nothing."
    if unknown:
        told += f" Nobody knows how these calls ended: {_counted(unknown)}."
    return told


def _is_open(call: TaskResult) -> bool:
    return call.error is not None and call.error.kind == "outcome_unknown"


def _counted(calls: Sequence[TaskResult]) -> str:
    times = Counter(call.tool for call in calls)
    return ", ".join(f"{tool} ({n} times)" if n > 1 else tool for tool, n in times.items())
