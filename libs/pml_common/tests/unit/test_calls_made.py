"""Descriptions of a run's calls so far."""

from uuid import UUID

from pml_common.calls_made import calls_made, calls_recorded
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.trace import TaskResult, ToolEnd, ToolStart, TraceEvent


def call(tool: str, error: WorkflowError | None = None) -> TaskResult:
    return TaskResult(
        node_id="n1",
        occurrence=0,
        tool=tool,
        args={},
        success=error is None,
        error=error,
        trace_id=UUID(int=1),
        started_at=0,
        duration_ms=1,
    )


def test_calls_with_unknown_outcomes_are_listed_apart() -> None:
    lost = WorkflowError(kind="outcome_unknown", message="the run ended before")
    failed = WorkflowError(kind="tool_error", message="no such file")
    assert calls_made([]) == "It has called nothing."
    assert calls_made([call("fs:stat"), call("fs:read", failed), call("fs:stat")]) == (
        "It has called fs:stat (2 times), fs:read."
    )
    assert calls_made([call("fs:write", lost)]) == (
        "The outcome of these calls is unknown: fs:write."
    )


def start(n: int, tool: str) -> ToolStart:
    return ToolStart(trace_id=UUID(int=n), ts=0, tool=tool, args={}, args_hash="")


def end(n: int, tool: str, error: WorkflowError | None = None) -> ToolEnd:
    return ToolEnd(
        trace_id=UUID(int=n), ts=0, tool=tool, success=error is None, duration_ms=1, error=error
    )


def test_calls_are_listed_from_an_incomplete_journal() -> None:
    unknown = WorkflowError(kind="outcome_unknown", message="who knows")
    entries: list[TraceEvent] = [
        start(1, "fs:stat"),
        end(1, "fs:stat"),
        start(2, "fs:write"),
        end(3, "fs:read"),  # its start is missing
        start(4, "fs:move"),
        end(4, "fs:move", unknown),
    ]
    assert calls_recorded(entries) == (
        "It has called fs:stat, fs:read. The outcome of these calls is unknown: fs:write, fs:move."
    )
    assert calls_recorded([]) == "It has called nothing."
