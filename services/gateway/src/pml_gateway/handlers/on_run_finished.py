"""A run ended, and its workflow with it."""

from collections.abc import Callable, Sequence
from datetime import datetime

from pml_common.bus.port import Journal
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_gateway.domain.happenings import RunEnded
from pml_gateway.domain.rules import Rules
from pml_gateway.handlers.founded import require_founded
from pml_gateway.handlers.runs import Runs
from pml_gateway.handlers.step import step_once
from pml_gateway.ports import Newsroom, WorkflowStore

_CONSUMER = catalog.GATEWAY_ON_RUN_FINISHED.durable


async def on_run_finished(
    run: RunFinished,
    journal: Journal,
    workflows: WorkflowStore,
    newsroom: Newsroom,
    runs: Runs,
    rules: Rules,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """Keep the result and state the end; a redelivery states the same fact. Raises Rejected for an
    end that is not the journal's."""
    await require_founded(run, journal)
    return await step_once(run, _CONSUMER, RunEnded(run, now()), workflows, newsroom, runs, rules)
