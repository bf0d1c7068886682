"""The in-memory bus on a manual clock: exact times."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from libs.pml_common.tests.support.fakes import HangingHandler, RecordingHandler
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.clock import ManualClock
from pml_common.bus.errors import BusUnavailable, QueryFailed, Retryable
from pml_common.contracts import catalog
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_broker import MemoryBroker
from pml_common.testing.memory_bus import MemoryBus

SCOPE = Scope(org="acme", project="webapp")
CONSUMER = replace(catalog.REGISTRY_ON_TOOLS_LISTED, retry_delays_s=(0.2, 1.0))


def tools_listed() -> ToolsListed:
    return ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=())


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> MemoryBroker:
    return MemoryBroker(clock)


async def let_run() -> None:
    """Run every task that is ready."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_retry_is_delivered_at_its_time_and_not_before(
    clock: ManualClock, broker: MemoryBroker
) -> None:
    bus, recorder = MemoryBus(broker), RecordingHandler(Retryable("a"), Retryable("b"))
    await bus.consume(CONSUMER, recorder)
    await bus.publish(tools_listed())
    await recorder.has_seen(1)
    for almost, delay in ((0.19, 0.2), (0.99, 1.0)):
        await let_run()
        count = len(recorder.seen)
        clock.advance(almost)
        await let_run()
        assert len(recorder.seen) == count
        clock.advance(delay - almost)
        await recorder.has_seen(count + 1)
    await broker.settled()


async def test_a_dead_replicas_message_waits_for_the_ack_wait(
    clock: ManualClock, broker: MemoryBroker
) -> None:
    doomed, heir, hanging, recorder = (
        MemoryBus(broker),
        MemoryBus(broker),
        HangingHandler(),
        RecordingHandler(),
    )
    await doomed.consume(CONSUMER, hanging)
    await doomed.publish(tools_listed())
    await hanging.has_begun()
    doomed.kill()
    await heir.consume(CONSUMER, recorder)
    clock.advance(29.9)
    await let_run()
    assert recorder.seen == []
    clock.advance(0.1)
    await recorder.has_seen(1)


async def test_a_living_replica_keeps_its_message_past_every_ack_wait(
    clock: ManualClock, broker: MemoryBroker
) -> None:
    bus, other, hanging, recorder = (
        MemoryBus(broker),
        MemoryBus(broker),
        HangingHandler(),
        RecordingHandler(),
    )
    await bus.consume(CONSUMER, hanging)
    await bus.publish(tools_listed())
    await hanging.has_begun()
    await other.consume(CONSUMER, recorder)
    clock.advance(1000)
    await let_run()
    assert recorder.seen == []
    await bus.drain(0)
    await recorder.has_seen(1)


async def test_settled_waits_for_running_handlers_and_times_out(
    broker: MemoryBroker,
) -> None:
    bus = MemoryBus(broker)
    await broker.settled()
    await bus.publish(tools_listed())
    await broker.settled()
    await bus.consume(CONSUMER, HangingHandler())
    with pytest.raises(TimeoutError):
        await broker.settled(0.01)
    await bus.drain(0)


async def test_a_request_times_out_on_the_same_clock(
    clock: ManualClock, broker: MemoryBroker
) -> None:
    bus, begun = MemoryBus(broker), asyncio.Event()

    async def sleepy(question: ListTools) -> ToolCatalog:
        begun.set()
        await asyncio.Event().wait()
        return ToolCatalog(tools=())

    await bus.serve(catalog.LIST_TOOLS, sleepy)
    asking = bus.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE), timeout=50)
    asked = asyncio.create_task(asking)
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
        clock.advance(50)
        with pytest.raises(QueryFailed, match="no answer within 50 s"):
            await asked
    await bus.drain(0)


async def test_an_unreachable_server_fails_everything_until_it_is_back(
    broker: MemoryBroker,
) -> None:
    bus = MemoryBus(broker)
    broker.available = False
    assert not await bus.healthy()
    with pytest.raises(BusUnavailable, match="not connected"):
        await bus.publish(tools_listed())
    with pytest.raises(BusUnavailable, match="not connected"):
        await bus.history(SCOPE, "fs")
    with pytest.raises(QueryFailed, match="not connected"):
        await bus.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE))
    broker.available = True
    assert await bus.publish(tools_listed()) == 1
