"""One tool call: the query to the gateway, and the consequences of its outcome for the run."""

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic_core import to_json

from pml_common.contracts.error import ErrorKind, WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.trace import ToolStart, TraceEvent
from pml_executor.domain.endings import RunEnded
from pml_executor.domain.journal import Call


def call_query(
    command: RunWorkflow,
    call: Call,
    grant_digest: str,
    timeout_s: float,
    started: float,
    *,
    is_new: bool,
    again: bool = False,
) -> CallTool:
    """Build the query to the gateway; `again` where the first outcome of a repeatable call is
    unknown.

    A call that `is_new` has not been requested by any executor, unless this one was suspended
    since: `asked_first_at` is when the call `started`, in Unix milliseconds, before any wait.
    """
    is_first = is_new and not again
    return CallTool(
        scope=command.scope,
        workflow_id=command.workflow_id,
        node_id=call.node_id,
        occurrence=call.occurrence,
        attempt="again" if again else "first",
        tool=call.tool,
        args=call.args,
        grant_digest=grant_digest,
        timeout_s=max(0.001, timeout_s),
        asked_first_at=datetime.fromtimestamp(started / 1000, UTC) if is_first else None,
    )


def after_unknown(first: ToolOutcome, again: ToolOutcome) -> ToolOutcome:
    """Return the outcome of a call that was repeated because its first outcome was unknown: the
    second one if that is known, else the first."""
    return again if again.status in ("ok", "tool_error", "ask") else first


def bounded_outcome(outcome: ToolOutcome, max_bytes: int) -> tuple[ToolOutcome, int]:
    """Return the outcome and its size in bytes of JSON; an oversize one becomes a tool error."""
    size = len(to_json(outcome.result))
    if size <= max_bytes:
        return outcome, size
    message = (
        f"the tool answered {size} bytes, more than the {max_bytes} that a run can take; "
        "ask it for less"
    )
    return ToolOutcome(status="tool_error", message=message), 0


def ended_by_call(kind: ErrorKind, call: Call, message: str) -> RunEnded:
    """Build the error that ends the run at this call."""
    return RunEnded(
        WorkflowError(
            kind=kind,
            message=message,
            node_id=call.node_id,
            tool=call.tool,
            arguments=call.args,
        )
    )


def mock_of(
    command: RunWorkflow, start: ToolStart, entries: Sequence[TraceEvent]
) -> ToolOutcome | None:
    """Return the mock that answers this call in a dry run, or None: the call is made.

    `entries` is the journal with `start` in it. The choice among the tool's mocks depends only on
    the tool's earlier calls there, so that a replay gets the same.
    """
    mocks = command.mocks.get(start.tool)
    if not mocks:
        return None
    calls = [each.trace_id for each in entries if _calls(each, start.tool)]
    turn = min(calls.index(start.trace_id), len(mocks) - 1)
    return ToolOutcome(status="ok", result=mocks[turn])


def _calls(entry: TraceEvent, tool: str) -> bool:
    return isinstance(entry, ToolStart) and entry.tool == tool
