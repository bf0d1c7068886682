"""Builders of the journal's entries; `ts` is Unix time in milliseconds."""

from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.trace import (
    CapabilityEnd,
    CapabilityStart,
    DecisionTaken,
    LogWritten,
    LoopPassed,
    ToolEnd,
    ToolStart,
    TraceEvent,
)
from pml_executor.domain.endings import Ending
from pml_executor.domain.journal import Call, RunJournal
from pml_executor.domain.protocol import BranchNote, LogNote, LoopNote, Note


def run_started(command: RunWorkflow, ts: float) -> CapabilityStart:
    """Build the first entry, which determines the run's clock and its deadline."""
    return CapabilityStart(
        trace_id=ids.root_trace_id(command.workflow_id),
        ts=ts,
        capability_id=command.capability.capability_id,
        name=command.capability.name,
        args=command.args,
    )


def run_ended(command: RunWorkflow, ending: Ending, started: float, ts: float) -> CapabilityEnd:
    """Build the last entry."""
    return CapabilityEnd(
        trace_id=ids.root_trace_id(command.workflow_id),
        ts=ts,
        capability_id=command.capability.capability_id,
        success=ending.error is None,
        duration_ms=max(0.0, ts - started),
        result=ending.result,
        error=ending.error,
        notices=ending.notices,
        void=ending.void,
    )


def call_started(command: RunWorkflow, call: Call, parent: UUID, ts: float) -> ToolStart:
    """Build the entry stored before the call is made; `parent` is the trace of its caller."""
    return ToolStart(
        trace_id=ids.call_trace_id(command.workflow_id, *call.key),
        parent_trace_id=parent,
        node_id=call.node_id,
        occurrence=call.occurrence,
        ts=ts,
        tool=call.tool,
        args=call.args,
        args_hash=call.args_hash,
    )


def call_ended(
    start: ToolStart, outcome: ToolOutcome, ts: float, *, mocked: bool = False
) -> ToolEnd:
    """Build the entry stored before the program receives the outcome."""
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
        mocked=mocked,
    )


def noted(trace: UUID, journal: RunJournal, note: Note, ts: float) -> TraceEvent | None:
    """Build the entry for a note; None where it is already recorded. `trace` is that of the program
    or the capability that sent it."""
    if isinstance(note, BranchNote):
        return _branch_taken(trace, journal, note, ts)
    if isinstance(note, LoopNote):
        return _round_begun(trace, journal, note, ts)
    return _line_logged(trace, note, ts) if journal.log() else None


def _branch_taken(
    trace: UUID, journal: RunJournal, note: BranchNote, ts: float
) -> DecisionTaken | None:
    occurrence = journal.decide(note.node, note.outcome, max(1, note.counted))
    if occurrence is None:
        return None
    return DecisionTaken(
        trace_id=trace,
        node_id=note.node,
        occurrence=occurrence,
        ts=ts,
        outcome=note.outcome,
        counted=note.counted,
    )


def _round_begun(trace: UUID, journal: RunJournal, note: LoopNote, ts: float) -> LoopPassed | None:
    iterations = journal.begin_round(note.node, max(1, note.counted))
    if iterations is None:
        return None
    return LoopPassed(
        trace_id=trace,
        node_id=note.node,
        occurrence=iterations - 1,
        ts=ts,
        iterations=iterations,
        counted=note.counted,
    )


def _line_logged(trace: UUID, note: LogNote, ts: float) -> LogWritten:
    return LogWritten(
        trace_id=trace,
        ts=ts,
        level=note.level,
        message=note.message,
    )


def _error_of(start: ToolStart, outcome: ToolOutcome) -> WorkflowError | None:
    if outcome.status == "ok":
        return None
    default = "did not answer in time" if outcome.status == "timeout" else "failed"
    if outcome.status == "refused":
        message = outcome.message or f"{start.tool} {default}"
        return WorkflowError(kind="denied", message=message, node_id=start.node_id, tool=start.tool)
    return WorkflowError(
        kind="tool_error",
        message=outcome.message or f"{start.tool} {default}",
        node_id=start.node_id,
        tool=start.tool,
        fault="environment" if outcome.status == "timeout" else outcome.fault,
    )
