"""Checks of an executor's messages against the journal of the run."""

from pml_common.bus.errors import BusError, Rejected
from pml_common.bus.port import Journal
from pml_common.bus.run_journal import StoredRun
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import TRACE_RECORDED
from pml_common.contracts.executor import RunFinished, TraceRecorded, WorkflowParked
from pml_gateway.domain.workflow.provenance import journal_mismatch


async def require_in_journal(message: RunFinished | WorkflowParked, journal: Journal) -> None:
    """Raise Rejected for a forged or stale message, and BusError where the append that it names
    cannot be read, as on a replica of the stream that lags; after a minute of retries that append
    counts as lost."""
    last = await journal.last_of(TRACE_RECORDED, message.scope, str(message.workflow_id))
    append = last.message if last is not None else None
    if append is not None and not isinstance(append, TraceRecorded):
        raise Rejected("the last message of the journal is no append")
    sequence, named = (last.sequence if last is not None else 0), message.journal_sequence
    why_not = journal_mismatch(message, sequence, append)
    if why_not is None:
        return
    refusal = f"not taken: {why_not}"
    if named is not None and named > sequence:
        raise BusError(refusal)
    raise Rejected(refusal)


def contradicts(message: Message | None, stored: StoredRun) -> bool:
    """Whether a message is an end or a parking that a readable journal does not record, its append
    not being lost."""
    if not isinstance(message, RunFinished | WorkflowParked) or stored.fault is not None:
        return False
    sequence, last = stored.last
    is_lost = message.journal_sequence is not None and message.journal_sequence > sequence
    return not is_lost and journal_mismatch(message, sequence, last) is not None
