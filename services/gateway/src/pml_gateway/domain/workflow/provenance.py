"""Checks of other services' messages against the request and the run's journal."""

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.executor import RunFinished, TraceRecorded, WorkflowParked
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.trace import CapabilityEnd


def is_analysis_of(requested: ExecutionRequested, analysis: ExecutionAnalyzed) -> bool:
    """Whether an analysis is of exactly the requested program, for the same principal."""
    asked = requested.code, requested.principal, requested.name, requested.dry_run is not None
    read = analysis.code, analysis.principal, analysis.capability.name, analysis.dry_run
    ours = (analysis.scope, analysis.workflow_id) == (requested.scope, requested.workflow_id)
    return ours and read == asked


def answers_stored_request(analysis: ExecutionAnalyzed) -> bool:
    """Whether an analysis was published for the workflow's stored request, not for a query."""
    request = ids.effect_id(analysis.workflow_id, "execution-requested")
    return analysis.event_id == ids.effect_id(request, "execution-analyzed")


def journal_mismatch(
    message: RunFinished | WorkflowParked, sequence: int, last: TraceRecorded | None
) -> str | None:
    """Return why a message does not agree with the journal whose last append, `last`, has this
    sequence; None if it does. The executor that made that append owns the run."""
    if last is None:
        return "the run has no journal"
    if message.journal_sequence != sequence:
        named = message.journal_sequence
        return f"it names append {named} of the journal, whose last is {sequence}"
    if isinstance(message, WorkflowParked):
        mark = last.mark
        if mark is None or mark.wanted is None or mark.command_id != message.command_id:
            return "the journal does not say that the run is parked under this command"
        return None
    end = last.entries[-1] if last.entries else None
    if not isinstance(end, CapabilityEnd) or end.parent_trace_id is not None:
        return "the journal does not say that the run has ended"
    if (end.success, end.result, end.error) != (message.success, message.result, message.error):
        return "the journal says that the run ended otherwise"
    return None
