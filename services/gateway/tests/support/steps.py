"""Steps of a workflow, for tests."""

from pml_common.contracts.base import Message
from pml_gateway.domain.workflow.events import Analyzed, Decided, WorkflowEvent
from pml_gateway.domain.workflow.workflow import Workflow, advance
from services.gateway.tests.support.builders import (
    AT,
    READ,
    RULES,
    WRITE,
    analyzed,
    later,
)


def after(
    before: Workflow, *workflow_events: WorkflowEvent
) -> tuple[Workflow, tuple[Message, ...]]:
    """Return the workflow after all events, and the effects of the last."""
    effects: tuple[Message, ...] = ()
    for workflow_event in workflow_events:
        before, effects = advance(before, workflow_event, RULES)
    return before, effects


def asking(of: Workflow) -> Analyzed:
    return Analyzed(analyzed(of, "ask", (READ, WRITE)), AT)


def approve(of: Workflow, seconds: float = 1) -> Decided:
    waiting, _ = after(of, asking(of))
    assert waiting.approval is not None
    return Decided(waiting.approval.approval_id, "approved", "mira", later(seconds))
