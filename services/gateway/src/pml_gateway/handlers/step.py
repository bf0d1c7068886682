"""A step of a workflow that a message of the bus causes, taken once."""

import logging
from collections.abc import Sequence

from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_gateway.domain.happenings import Happening
from pml_gateway.domain.workflow import Rules, advance
from pml_gateway.ports import WorkflowStore

log = logging.getLogger(__name__)


async def step_once(
    message: ExecutionAnalyzed | AnalysisRejected | RunFinished,
    consumer: str,
    happening: Happening,
    workflows: WorkflowStore,
    rules: Rules,
) -> Sequence[Message]:
    """Advance the workflow that a message is about; a redelivery states the same facts."""
    async with workflows.once(message.event_id, consumer) as handling:
        if handling.replayed is not None:
            return handling.replayed
        before = await handling.workflow(message.scope, message.workflow_id)
        if before is None:
            log.warning("%s: there is no workflow %s", message.scope, message.workflow_id)
            return handling.conclude(())
        after, effects = advance(before, happening, rules)
        if after is not before:
            await handling.save(after)
        return handling.conclude(effects)
