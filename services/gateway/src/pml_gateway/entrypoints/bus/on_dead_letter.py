"""Handler of dead letters: the workflow that waits for a dead-lettered message ends."""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from pml_common.bus.port import DeadMessage, Journal
from pml_common.bus.run_journal import StoredRun, read_run
from pml_common.calls_made import calls_recorded
from pml_common.contracts.base import Message
from pml_common.contracts.trace import CapabilityEnd
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.workflow.events import GivenUp, JournalSeen
from pml_gateway.domain.workflow.given_up import CONSUMERS
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import WorkflowStore


async def on_dead_letter(
    dead: DeadMessage,
    workflows: WorkflowService,
    store: WorkflowStore,
    journal: Journal,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """End the workflow, with what its journal records; a repetition changes nothing. An end that
    the journal has, though it could not be stored, is stored now."""
    if dead.consumer not in CONSUMERS:
        return ()
    workflow_id = UUID(dead.entity)
    before = await store.get(dead.scope, workflow_id)
    if before is None:
        return ()
    seen: JournalSeen | None = None
    if before.state == "running":
        kind = before.grant.journal if before.grant else "signed"
        seen = _seen(await read_run(journal, dead.scope, workflow_id, kind))
    given_up = GivenUp(dead.consumer, dead.message_id, dead.reason, now(), seen)

    def step(workflow: Workflow) -> Step:
        return workflows.advance(workflow, given_up)

    await workflows.step(dead.scope, workflow_id, step)
    return ()


def _seen(stored: StoredRun) -> JournalSeen:
    entries = stored.entries
    succeeded = None
    match entries[-1] if entries else None:
        case CapabilityEnd(parent_trace_id=None, success=success):
            succeeded = success
        case _:
            pass
    return JournalSeen(calls_recorded(entries), stored.fault, succeeded)
