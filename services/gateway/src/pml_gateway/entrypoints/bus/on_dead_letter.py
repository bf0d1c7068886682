"""A message was given up for good: the workflow that waits for it ends."""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from pml_common.bus.port import DeadMessage, Journal
from pml_common.bus.run_journal import StoredRun, read_run
from pml_common.calls_made import calls_recorded
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.trace import CapabilityEnd
from pml_gateway.application.runs import Runs
from pml_gateway.domain.workflow.events import GivenUp, JournalSeen
from pml_gateway.domain.workflow.given_up import CONSUMERS
from pml_gateway.domain.workflow.provenance import journal_mismatch
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from pml_gateway.domain.workflow.workflow_state import Rules
from pml_gateway.ports import Notifier, Outgoing, Relay, WorkflowStore


async def on_dead_letter(
    buried: DeadMessage,
    journal: Journal,
    workflows: WorkflowStore,
    notifier: Notifier,
    runs: Runs,
    relay: Relay,
    rules: Rules,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """End the workflow with what its journal tells; again, it changes nothing. An end or a park
    that does not follow from the journal was rightly refused and ends nothing."""
    if buried.consumer not in CONSUMERS:
        return ()
    workflow_id = UUID(buried.entity)
    before = await workflows.get(buried.scope, workflow_id)
    if before is None or before.finished_at is not None:
        return ()
    seen: JournalSeen | None = None
    if before.state == "running":
        stored = await read_run(journal, buried.scope, workflow_id)
        if _was_refused(buried.message, stored):
            return ()
        seen = _seen(stored)
    workflow_event = GivenUp(buried.consumer, buried.message_id, buried.reason, now(), seen)

    def step(workflow: Workflow) -> Step:
        return advance(workflow, workflow_event, rules)

    taken = await workflows.change(buried.scope, workflow_id, step)
    if taken is not None:
        after, effects = taken
        await relay.publish([Outgoing(each, after.traceparent) for each in effects])
        runs.know(after)
        notifier.notify(after)
    return ()


def _was_refused(fact: Message | None, stored: StoredRun) -> bool:
    if not isinstance(fact, RunFinished | WorkflowParked) or stored.fault is not None:
        return False
    sequence, last = stored.last
    is_lost = fact.journal_sequence is not None and fact.journal_sequence > sequence
    return not is_lost and journal_mismatch(fact, sequence, last) is not None


def _seen(stored: StoredRun) -> JournalSeen:
    entries = stored.entries
    succeeded = None
    match entries[-1] if entries else None:
        case CapabilityEnd(parent_trace_id=None, success=success):
            succeeded = success
        case _:
            pass
    return JournalSeen(calls_recorded(entries), stored.fault, succeeded)
