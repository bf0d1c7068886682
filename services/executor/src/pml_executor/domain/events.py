"""The journal's entries, made in one place; `ts` is Unix time in milliseconds."""

from pml_common.contracts import ids
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.trace import (
    CapabilityEnd,
    CapabilityStart,
    DecisionTaken,
    LogWritten,
    ToolEnd,
    ToolStart,
)
from pml_executor.domain.endings import Ending
from pml_executor.domain.journal import Call
from pml_executor.domain.protocol import BranchNote, LogNote


def run_started(command: RunWorkflow, ts: float) -> CapabilityStart:
    """The first entry; fixes the run's clock and its deadline."""
    return CapabilityStart(
        trace_id=ids.root_trace_id(command.workflow_id),
        ts=ts,
        capability_id=command.capability.capability_id,
        name=command.capability.name,
        args=command.args,
    )


def run_ended(command: RunWorkflow, ending: Ending, started: float, ts: float) -> CapabilityEnd:
    """The last entry."""
    return CapabilityEnd(
        trace_id=ids.root_trace_id(command.workflow_id),
        ts=ts,
        capability_id=command.capability.capability_id,
        success=ending.error is None,
        duration_ms=max(0.0, ts - started),
        result=ending.result,
        error=ending.error,
    )


def call_started(command: RunWorkflow, call: Call, ts: float) -> ToolStart:
    """Stored before the call is made."""
    return ToolStart(
        trace_id=ids.call_trace_id(command.workflow_id, *call.key),
        parent_trace_id=ids.root_trace_id(command.workflow_id),
        node_id=call.node_id,
        occurrence=call.occurrence,
        ts=ts,
        tool=call.tool,
        args=call.args,
        args_hash=call.args_hash,
    )


def call_ended(start: ToolStart, outcome: ToolOutcome, ts: float) -> ToolEnd:
    """Stored before the program sees the outcome."""
    return ToolEnd(
        trace_id=start.trace_id,
        parent_trace_id=start.parent_trace_id,
        node_id=start.node_id,
        occurrence=start.occurrence,
        ts=ts,
        tool=start.tool,
        success=outcome.status == "ok",
        duration_ms=max(0.0, ts - start.ts),
        result=outcome.result if outcome.status == "ok" else None,
        error=_error_of(start, outcome),
    )


def branch_taken(
    command: RunWorkflow, note: BranchNote, occurrence: int, ts: float
) -> DecisionTaken:
    """One evaluation of one condition."""
    return DecisionTaken(
        trace_id=ids.root_trace_id(command.workflow_id),
        node_id=note.node,
        occurrence=occurrence,
        ts=ts,
        outcome=note.outcome,
    )


def line_logged(command: RunWorkflow, note: LogNote, ts: float) -> LogWritten:
    """One line of the program's console."""
    return LogWritten(
        trace_id=ids.root_trace_id(command.workflow_id),
        ts=ts,
        level=note.level,
        message=note.message,
    )


def _error_of(start: ToolStart, outcome: ToolOutcome) -> WorkflowError | None:
    if outcome.status == "ok":
        return None
    default = "did not answer in time" if outcome.status == "timeout" else "failed"
    return WorkflowError(
        kind="denied" if outcome.status == "refused" else "tool_error",
        message=outcome.message or f"{start.tool} {default}",
        node_id=start.node_id,
        tool=start.tool,
    )
