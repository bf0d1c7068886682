"""Stored workflows, advanced as by handlers."""

from uuid import uuid4

from pml_common.contracts.base import Event
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Approval, Workflow
from pml_gateway.ports import Taken, WorkflowStore
from services.gateway.tests.support.builders import (
    analyzed,
    workflow,
)
from services.gateway.tests.support.steps import Cause, step

CONSUMER = "gateway-on-something"
NASTY = 'quote " backslash \\ NUL \x00 é 😀 \u2028 </script>'


async def take(
    store: WorkflowStore, of: Workflow, why: Cause, message: Event | None = None
) -> Taken:
    """Advance a stored workflow as a handler does."""
    cause = message or cause_of(of)
    taken = await store.step_once(cause, CONSUMER, of.workflow_id, lambda before: step(before, why))
    assert taken is not None
    return taken


def cause_of(of: Workflow) -> Event:
    """Build a new message in the workflow's scope."""
    return of.requested.model_copy(update={"event_id": uuid4()})


async def waiting(store: WorkflowStore, **more: object) -> tuple[Workflow, Approval]:
    """Store a workflow that waits for approval, and return both."""
    new = workflow(**more)  # pyright: ignore[reportArgumentType] - handed on
    await store.accept(new, (new.requested,))
    await take(store, new, Analyzed(analyzed(new, "ask"), new.requested.requested_at))
    found = await store.get(new.scope, new.workflow_id)
    assert found is not None
    assert found.approval is not None
    return found, found.approval
