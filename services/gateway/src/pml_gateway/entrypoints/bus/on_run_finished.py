"""A run ended, and its workflow with it."""

from collections.abc import Callable, Sequence
from datetime import datetime

from pml_common.bus.port import Journal
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_gateway.application.runs import Runs
from pml_gateway.domain.workflow.events import RunEnded
from pml_gateway.domain.workflow.workflow_state import Rules
from pml_gateway.entrypoints.bus.founded import require_founded
from pml_gateway.entrypoints.bus.step import step_once
from pml_gateway.ports import Notifier, WorkflowStore

_CONSUMER = catalog.GATEWAY_ON_RUN_FINISHED.durable


async def on_run_finished(
    run: RunFinished,
    journal: Journal,
    workflows: WorkflowStore,
    notifier: Notifier,
    runs: Runs,
    rules: Rules,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """Keep the result and state the end; a redelivery states the same fact. Raises Rejected for an
    end that is not the journal's."""
    await require_founded(run, journal)
    return await step_once(run, _CONSUMER, RunEnded(run, now()), workflows, notifier, runs, rules)
