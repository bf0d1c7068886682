"""Handler of `run-finished`: the workflow ends with its run."""

from collections.abc import Callable, Sequence
from datetime import datetime

from pml_common.bus.port import Journal
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.workflow.events import RunEnded
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.entrypoints.bus.journal_check import require_in_journal

_CONSUMER = catalog.GATEWAY_ON_RUN_FINISHED.durable


async def on_run_finished(
    run: RunFinished,
    workflows: WorkflowService,
    journal: Journal,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """Store the result and end the workflow; a redelivery returns the same messages. Raises
    Rejected for an end that the journal does not record."""
    await require_in_journal(run, journal)
    ended = RunEnded(run, now())

    def step(workflow: Workflow) -> Step:
        return workflows.advance(workflow, ended)

    return await workflows.step_once(run, _CONSUMER, step)
