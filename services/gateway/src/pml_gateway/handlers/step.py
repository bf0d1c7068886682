"""A step of a workflow that a message of the bus causes, taken once."""

import logging
from collections.abc import Callable, Sequence

from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_gateway.domain.happenings import Happening
from pml_gateway.domain.rules import Rules
from pml_gateway.domain.workflow import Step, Workflow, advance
from pml_gateway.handlers.runs import Runs
from pml_gateway.ports import Newsroom, WorkflowStore

log = logging.getLogger(__name__)


async def step_once(
    message: ExecutionAnalyzed | AnalysisRejected | WorkflowParked | RunFinished,
    consumer: str,
    happening: Happening | Callable[[Workflow], Happening],
    workflows: WorkflowStore,
    newsroom: Newsroom,
    runs: Runs,
    rules: Rules,
) -> Sequence[Message]:
    """Advance the workflow that a message is about; a redelivery states the same facts."""

    def step(before: Workflow) -> Step:
        return advance(before, happening(before) if callable(happening) else happening, rules)

    taken = await workflows.step_once(message, consumer, message.workflow_id, step)
    if taken is None:
        log.warning("%s: there is no workflow %s", message.scope, message.workflow_id)
        return ()
    if taken.workflow is not None:
        runs.know(taken.workflow)
        newsroom.tell(taken.workflow)
    return taken.effects
