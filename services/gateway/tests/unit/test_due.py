"""Overdue workflows, by the bus's clock, and the outages of the bus that postpone their end."""

from contextlib import suppress
from datetime import datetime, timedelta
from time import monotonic

from pml_common.bus import names
from pml_common.bus.errors import BusUnavailable
from pml_common.contracts import catalog
from pml_common.outages import Outage
from pml_common.storage.errors import StorageUnavailable
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.entrypoints.timers.on_due import on_due
from services.gateway.tests.support.builders import AT, RULES, analyzed, workflow
from services.gateway.tests.support.fake_stores import FakeWorkflows
from services.gateway.tests.support.harness import (
    workflow_service,
)


async def test_an_outage_of_the_bus_postpones_the_end_of_an_overdue_workflow() -> None:
    new, store, bus = workflow(), FakeWorkflows(), MemoryBus()
    await store.accept(new, (new.requested,))
    hopeless = AT + RULES.grant_slack
    outages = [Outage(monotonic() - 1800.0, monotonic())]

    async def state_at(at: datetime) -> str | None:
        await on_due(
            new.scope,
            workflows=workflow_service(store, bus),
            store=store,
            tools=ToolRouter([]),
            now=lambda: at,
            outages=lambda: outages,
        )
        known = await store.get(new.scope, new.workflow_id)
        return known.state if known else None

    assert await state_at(hopeless) == "requested"
    assert await state_at(hopeless + timedelta(days=1)) == "failed"


async def test_a_run_is_commanded_again_once_no_executor_is_to_have_it() -> None:
    new, store, bus = workflow(), FakeWorkflows(), MemoryBus()
    service = workflow_service(store, bus)
    accepted = await service.accept(service.advance(new, Analyzed(analyzed(new), AT)))
    await service.store.settle(new.scope, new.workflow_id)

    async def commands_at(at: datetime) -> int:
        with suppress(BusUnavailable, StorageUnavailable):
            await on_due(new.scope, service, store, ToolRouter([]), now=lambda: at)
        bus.broker.available = True
        return len(await bus.salvage(catalog.RUN_WORKFLOW, new.scope, str(new.workflow_id)))

    assert accepted.due_at is not None
    waited = accepted.due_at - AT
    assert await commands_at(AT + waited) == 0
    bus.broker.available = False
    assert await commands_at(AT + 2 * waited) == 0
    bus.broker.streams[names.events_stream(catalog.WORKFLOW_ACCEPTED)].messages.clear()
    assert await commands_at(AT + 4 * waited) == 1
