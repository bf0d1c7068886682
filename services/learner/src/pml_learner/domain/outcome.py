"""The lesson of a stored trace: the same for the run that comes in and for the trace read later."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pml_common.contracts.error import Fault
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import ExecutionTrace
from pml_common.contracts.trace import BranchDecision, TaskResult
from pml_learner.domain.fault import fault_of_error

Path = tuple[str, ...]

_NODE_ID_LENGTH: Final = 256
_HOUR_US: Final = 3_600_000_000


@dataclass(frozen=True)
class CallEnd:
    """The end of a tool call that its tool, or the capability, is to blame for if it failed."""

    node_id: str
    success: bool
    duration_ms: float


@dataclass(frozen=True)
class Outcome:
    """The end of one run of a capability. `principal` is a hash, `hour` is in hours of Unix time;
    durations are ≥ 0."""

    path: Path
    decisions: Sequence[BranchDecision]
    calls: Sequence[CallEnd]
    success: bool
    fault: Fault | None
    duration_ms: float
    principal: str
    hour: int


def outcome_of(trace: ExecutionTrace, principal: str) -> Outcome:
    """Return what a trace teaches; `principal` ran it."""
    return _outcome(trace, trace.task_results, trace.fault, principal, trace.executed_at)


def outcome_of_run(run: RunFinished, fault: Fault | None) -> Outcome:
    """Return what the trace of a run will teach, of the run itself without those inside it."""
    calls = [task for task in run.task_results if task.parent_trace_id in (None, run.trace_id)]
    return _outcome(run, calls, fault, run.principal, run.started_at)


def _outcome(
    end: ExecutionTrace | RunFinished,
    calls: Sequence[TaskResult],
    fault: Fault | None,
    principal: str,
    at: float,
) -> Outcome:
    return Outcome(
        path=tuple(map(stored_node_id, end.executed_path)),
        decisions=end.decisions,
        calls=[_end(call) for call in calls if _is_judged(call)],
        success=end.success,
        fault=fault,
        duration_ms=max(0.0, end.duration_ms),  # negative after a clock was set back
        principal=hashlib.sha256(_storable(principal).encode()).hexdigest()[:16],
        hour=round(at * 1000) // _HOUR_US,
    )


def stored_node_id(node_id: str) -> str:
    """Shorten a node id to what is stored of it: programs choose the ids of dynamic calls."""
    return _storable(node_id)[:_NODE_ID_LENGTH]


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd")  # as pml_common.storage.queries, which does I/O


def _is_judged(call: TaskResult) -> bool:
    is_ours = call.success or fault_of_error(call.error) == "capability"
    return is_ours and not call.mocked


def _end(call: TaskResult) -> CallEnd:
    return CallEnd(stored_node_id(call.node_id), call.success, max(0.0, call.duration_ms))
