"""The clock: workflows that stand still are asked for again, approvals that nobody gave expire."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from time import monotonic

from pml_common.outages import Outage, away_since, no_outages
from pml_gateway.domain.tool_calls.repeatable import repeatable_among
from pml_gateway.domain.workflow.events import Due
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from pml_gateway.domain.workflow.workflow_state import Rules, waiting_since
from pml_gateway.ports import KnownTools, Outgoing, Relay, WorkflowStore

_MOST_AT_ONCE = 100


async def on_due(
    workflows: WorkflowStore,
    tools: KnownTools,
    relay: Relay,
    rules: Rules,
    now: Callable[[], datetime],
    outages: Callable[[], Sequence[Outage]] = no_outages,
) -> None:
    """Look after every workflow that is due; safe to run anywhere, any number of times."""
    at, here, away = now(), monotonic(), outages()

    def step(workflow: Workflow) -> Step:
        repeatable = repeatable_among(workflow.analysis, tools.find)
        waited = (at - waiting_since(workflow)).total_seconds()
        without_bus = timedelta(seconds=away_since(away, here - waited))
        return advance(workflow, Due(at, repeatable, without_bus), rules)

    for scope, workflow_id in await workflows.due(at, _MOST_AT_ONCE):
        taken = await workflows.change(scope, workflow_id, step)
        if taken is not None:
            after, effects = taken
            await relay.publish([Outgoing(message, after.traceparent) for message in effects])
