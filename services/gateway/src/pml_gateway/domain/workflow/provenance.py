"""Whether what another service states is about this request, or is what the run's journal says."""

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.executor import RunFinished, TraceRecorded, WorkflowParked
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.trace import CapabilityEnd


def is_of(requested: ExecutionRequested, analysis: ExecutionAnalyzed) -> bool:
    """Whether an analysis is of the very program that was asked for, for the same principal."""
    asked = requested.code, requested.principal, requested.name, requested.dry_run is not None
    read = analysis.code, analysis.principal, analysis.capability.name, analysis.dry_run
    ours = (analysis.scope, analysis.workflow_id) == (requested.scope, requested.workflow_id)
    return ours and read == asked


def unfounded(
    fact: RunFinished | WorkflowParked, sequence: int, last: TraceRecorded | None
) -> str | None:
    """Why the fact does not follow from the journal whose last append, `last`, has this sequence;
    None where it does. Whoever made that append holds the run."""
    if last is None:
        return "the run has no journal"
    if fact.journal_sequence != sequence:
        return f"it names append {fact.journal_sequence} of the journal, whose last is {sequence}"
    if isinstance(fact, WorkflowParked):
        mark = last.mark
        if mark is None or mark.wanted is None or mark.command_id != fact.command_id:
            return "the journal does not say that the run is parked under this command"
        return None
    end = last.entries[-1] if last.entries else None
    if not isinstance(end, CapabilityEnd) or end.parent_trace_id is not None:
        return "the journal does not say that the run has ended"
    if (end.success, end.result, end.error) != (fact.success, fact.result, fact.error):
        return "the journal says that the run ended otherwise"
    return None
