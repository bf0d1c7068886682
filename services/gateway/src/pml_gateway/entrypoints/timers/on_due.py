"""Timer for overdue workflows: repeat what got no answer, end what is hopeless or expired."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

from pml_common.contracts.scope import Scope
from pml_common.outages import Outage, downtime_since, no_outages
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.tool_calls.repeatable import read_only_among, repeatable_among
from pml_gateway.domain.workflow.events import Due
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.domain.workflow.workflow_state import waiting_since
from pml_gateway.ports import KnownTools, WorkflowStore

_MOST_AT_ONCE = 100


async def on_due(
    scope: Scope,
    workflows: WorkflowService,
    store: WorkflowStore,
    tools: KnownTools,
    now: Callable[[], datetime],
    outages: Callable[[], Sequence[Outage]] = no_outages,
) -> None:
    """Take the due step of every workflow of a scope that has one; safe to run in any number of
    gateways. Those of other scopes have tools that are not listed here."""
    at, here, away = now(), monotonic(), outages()

    def step(workflow: Workflow, *, is_held: bool) -> Step:
        repeatable = repeatable_among(workflow.analysis, tools.find)
        waited = (at - waiting_since(workflow)).total_seconds()
        without_bus = timedelta(seconds=downtime_since(away, here - waited))
        read_only = read_only_among(workflow.analysis, tools.find)
        due = Due(at, repeatable, without_bus, read_only, is_held)
        return workflows.advance(workflow, due)

    for workflow_id in await store.due(scope, at, _MOST_AT_ONCE):
        known = await workflows.known(scope, workflow_id)  # with an end that the journal has
        is_held = known is not None and await workflows.is_held(known)
        await workflows.step(scope, workflow_id, partial(step, is_held=is_held))
