"""What an executor states of a run is taken only as its journal says it."""

from pml_common.bus.errors import BusError, Rejected
from pml_common.bus.port import Journal
from pml_common.contracts.catalog import TRACE_RECORDED
from pml_common.contracts.executor import RunFinished, TraceRecorded, WorkflowParked
from pml_gateway.domain.workflow.provenance import journal_mismatch


async def require_founded(fact: RunFinished | WorkflowParked, journal: Journal) -> None:
    """Raise Rejected for a forged or stale fact, BusError where the append that it names is not to
    be seen, as on a replica of the stream that lags; after a minute of that it is lost."""
    last = await journal.last_of(TRACE_RECORDED, fact.scope, str(fact.workflow_id))
    message = last.message if last is not None else None
    if message is not None and not isinstance(message, TraceRecorded):
        raise Rejected("what stands in the journal is no append")
    sequence, named = (last.sequence if last is not None else 0), fact.journal_sequence
    why_not = journal_mismatch(fact, sequence, message)
    if why_not is None:
        return
    said = f"not taken: {why_not}"
    if named is not None and named > sequence:
        raise BusError(said)
    raise Rejected(said)
