"""A step of a workflow that a message of the bus causes, taken once."""

import logging
from collections.abc import Callable, Sequence

from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_gateway.application.runs import Runs
from pml_gateway.domain.workflow.events import WorkflowEvent
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from pml_gateway.domain.workflow.workflow_state import Rules
from pml_gateway.ports import Notifier, WorkflowStore

log = logging.getLogger(__name__)


async def step_once(
    message: ExecutionAnalyzed | AnalysisRejected | WorkflowParked | RunFinished,
    consumer: str,
    workflow_event: WorkflowEvent | Callable[[Workflow], WorkflowEvent],
    workflows: WorkflowStore,
    notifier: Notifier,
    runs: Runs,
    rules: Rules,
) -> Sequence[Message]:
    """Advance the workflow that a message is about; a redelivery states the same facts."""

    def step(before: Workflow) -> Step:
        return advance(
            before, workflow_event(before) if callable(workflow_event) else workflow_event, rules
        )

    taken = await workflows.step_once(message, consumer, message.workflow_id, step)
    if taken is None:
        log.warning("%s: there is no workflow %s", message.scope, message.workflow_id)
        return ()
    if taken.workflow is not None:
        runs.know(taken.workflow)
        notifier.notify(taken.workflow)
    return taken.effects
