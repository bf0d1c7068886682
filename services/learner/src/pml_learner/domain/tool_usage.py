"""Calls of tools by programs, and of named capabilities by name, as runs show them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import CAPABILITIES
from pml_common.contracts.references import UNNAMED
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import TaskResult

_MAX_ID: Final = 256
_NOT_MADE: Final = frozenset({"call_limit", "cancelled", "denied", "rejected"})
"""Errors of calls that reached no tool."""


class UsedTool(NamedTuple):
    """A tool of a scope, or with the server CAPABILITIES a named capability."""

    scope: Scope
    server_id: str
    tool_id: str


@dataclass(frozen=True)
class Calls:
    """Calls of one tool: the sum of their durations in milliseconds, and when the last began, in
    milliseconds of Unix time."""

    count: int = 0
    succeeded: int = 0
    duration_ms: float = 0.0
    last_at: float = 0.0

    def plus(self, other: "Calls") -> "Calls":
        """Return the calls of both."""
        return Calls(
            self.count + other.count,
            self.succeeded + other.succeeded,
            self.duration_ms + other.duration_ms,
            max(self.last_at, other.last_at),
        )


def calls_of(runs: Iterable[RunFinished]) -> Mapping[UsedTool, Calls]:
    """Count the calls that runs made; dry runs count for nothing."""
    found: dict[UsedTool, Calls] = {}
    for run in runs:
        for used, call in _calls(run) if not run.dry_run else ():
            found[used] = found.get(used, Calls()).plus(call)
    return found


def _calls(run: RunFinished) -> Iterator[tuple[UsedTool, Calls]]:
    if run.called_as is not None:
        whole = _one(run.success, run.duration_ms, run.started_at)
        yield UsedTool(run.scope, CAPABILITIES, f"cap:{run.called_as}"), whole
    for call in run.nested:
        if call.name and not call.name.startswith(UNNAMED):
            one = _one(call.success, call.duration_ms, call.started_at)
            yield UsedTool(run.scope, CAPABILITIES, f"cap:{call.name}"), one
    for task in run.task_results:
        server = task.tool.partition(":")[0]
        if _was_made(task) and server and len(task.tool) <= _MAX_ID:
            made = _one(task.success, task.duration_ms, task.started_at)
            yield UsedTool(run.scope, server, task.tool), made


def _one(succeeded: bool, duration_ms: float, at: float) -> Calls:
    return Calls(1, int(succeeded), max(0.0, duration_ms), at)  # negative after a clock's step back


def _was_made(task: TaskResult) -> bool:
    """Whether a call reached its tool: programs may ask for any tool, of any name."""
    refused = task.error is not None and task.error.kind in _NOT_MADE
    return not task.mocked and not refused
