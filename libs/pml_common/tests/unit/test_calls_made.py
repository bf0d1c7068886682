"""What a run has done so far, in words."""

from uuid import UUID

from pml_common.calls_made import calls_made
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.trace import TaskResult


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


def test_what_was_done_is_told_apart_from_what_nobody_knows() -> None:
    lost = WorkflowError(kind="outcome_unknown", message="the run ended before")
    failed = WorkflowError(kind="tool_error", message="no such file")
    assert calls_made([]) == "It has called nothing."
    assert calls_made([call("fs:stat"), call("fs:read", failed), call("fs:stat")]) == (
        "It has called fs:stat (2 times), fs:read."
    )
    assert calls_made([call("fs:write", lost)]) == (
        "It has called nothing. Nobody knows how these calls ended: fs:write."
    )
