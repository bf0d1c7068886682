"""Steps of a workflow, for tests."""

from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_gateway.domain.workflow.events import Analyzed, Decided, WorkflowEvent
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance, run_ended
from services.gateway.tests.support.builders import (
    AT,
    READ,
    RULES,
    WRITE,
    analyzed,
    later,
)

Cause = WorkflowEvent | RunFinished


def step(before: Workflow, cause: Cause) -> Step:
    """Return a workflow after an event, or after the end of its run."""
    if isinstance(cause, RunFinished):
        return run_ended(before, cause), ()
    return advance(before, cause, RULES)


def after(before: Workflow, *causes: Cause) -> Step:
    """Return the workflow after all events, and the effects of the last."""
    effects: tuple[Message, ...] = ()
    for cause in causes:
        before, effects = step(before, cause)
    return before, effects


def asking(of: Workflow) -> Analyzed:
    return Analyzed(analyzed(of, "ask", (READ, WRITE)), AT)


def approve(of: Workflow, seconds: float = 1) -> Decided:
    waiting, _ = after(of, asking(of))
    assert waiting.approval is not None
    return Decided(waiting.approval.approval_id, "approved", "mira", later(seconds))
