"""A run stands at a call that a person must agree to: ask."""

from collections.abc import Callable, Sequence
from datetime import datetime

from pml_common.bus.port import Journal
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import WorkflowParked
from pml_gateway.domain.happenings import Parked
from pml_gateway.domain.rules import Rules
from pml_gateway.handlers.founded import require_founded
from pml_gateway.handlers.step import step_once
from pml_gateway.ports import Newsroom, WorkflowStore

_CONSUMER = catalog.GATEWAY_ON_WORKFLOW_PARKED.durable


async def on_workflow_parked(
    parked: WorkflowParked,
    journal: Journal,
    workflows: WorkflowStore,
    newsroom: Newsroom,
    rules: Rules,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """Keep the question and state it; a redelivery states the same. Raises Rejected for a park that
    is not the journal's."""
    await require_founded(parked, journal)
    return await step_once(parked, _CONSUMER, Parked(parked, now()), workflows, newsroom, rules)
