"""The tool calls of a run, as answers tell them."""

from collections import Counter
from collections.abc import Sequence

from pml_common.contracts.base import Contract


class TaskAnswer(Contract):
    """A tool call of a run; `preview` is the start of its result. `mocked`: no tool was called;
    `approved`: a person allowed it."""

    id: str
    node_id: str
    tool: str
    success: bool
    duration_ms: float
    preview: str
    mocked: bool = False
    approved: bool = False


class SlowestCall(Contract):
    """The call of a run that took longest; `id` is that of its task."""

    id: str
    tool: str
    duration_ms: float


class CallCounts(Contract):
    """The tool calls of a run, counted; `by_tool` by `server:tool`."""

    made: int
    failed: int
    by_tool: dict[str, int]
    slowest: SlowestCall | None


def counted(tasks: Sequence[TaskAnswer]) -> CallCounts:
    """Count the calls of a run."""
    slowest = max(tasks, key=lambda task: task.duration_ms, default=None)
    return CallCounts(
        made=len(tasks),
        failed=sum(not task.success for task in tasks),
        by_tool=dict(Counter(task.tool for task in tasks).most_common()),
        slowest=slowest
        and SlowestCall(id=slowest.id, tool=slowest.tool, duration_ms=slowest.duration_ms),
    )
