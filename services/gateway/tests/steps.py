"""Steps of a workflow, for tests."""

from pml_common.contracts.base import Message
from pml_gateway.domain.happenings import Analyzed, Happening, Settled
from pml_gateway.domain.workflow import Workflow, advance
from services.gateway.tests.examples import (
    AT,
    READ,
    RULES,
    WRITE,
    analyzed,
    later,
)


def after(before: Workflow, *happenings: Happening) -> tuple[Workflow, tuple[Message, ...]]:
    """The workflow after all of them, and what followed from the last."""
    effects: tuple[Message, ...] = ()
    for happening in happenings:
        before, effects = advance(before, happening, RULES)
    return before, effects


def asking(of: Workflow) -> Analyzed:
    return Analyzed(analyzed(of, "ask", (READ, WRITE)), AT)


def approve(of: Workflow, seconds: float = 1) -> Settled:
    waiting, _ = after(of, asking(of))
    assert waiting.approval is not None
    return Settled(waiting.approval.approval_id, "approved", "mira", later(seconds))
