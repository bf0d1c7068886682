"""A step of a workflow that a message of the bus causes, taken once."""

import logging
from collections.abc import Sequence

from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_gateway.domain.happenings import Happening
from pml_gateway.domain.rules import Rules
from pml_gateway.domain.workflow import advance
from pml_gateway.ports import Newsroom, WorkflowStore

log = logging.getLogger(__name__)


async def step_once(
    message: ExecutionAnalyzed | AnalysisRejected | WorkflowParked | RunFinished,
    consumer: str,
    happening: Happening,
    workflows: WorkflowStore,
    newsroom: Newsroom,
    rules: Rules,
) -> Sequence[Message]:
    """Advance the workflow that a message is about; a redelivery states the same facts."""
    taken = await workflows.step_once(
        message, consumer, message.workflow_id, lambda before: advance(before, happening, rules)
    )
    if taken is None:
        log.warning("%s: there is no workflow %s", message.scope, message.workflow_id)
        return ()
    if taken.workflow is not None:
        newsroom.tell(taken.workflow)
    return taken.effects
