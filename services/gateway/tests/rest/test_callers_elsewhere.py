"""Callers of two gateways that wait for one workflow."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.clock import ManualClock
from pml_common.contracts.gateway import WorkflowAwaited
from pml_common.storage.scoped import ScopedPools
from pml_common.testing.memory_broker import MemoryBroker
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.local_notifier import LocalNotifier
from pml_gateway.adapters.stores import postgres_stores
from pml_gateway.app import register_handlers
from pml_gateway.application import callers_elsewhere
from pml_gateway.application.callers_elsewhere import CallersElsewhere
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.parts import Parts
from pml_gateway.ports import Caller, CallerSide
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import (
    FakeServers,
    World,
    Worlds,
    assembled,
    settings,
)

pytestmark = pytest.mark.integration

MIRA = Caller(SCOPE, "mira")
WITHDRAWN = CallerSide(withdrawn=lambda: True)


@dataclass
class Two:
    """A gateway, another one on the same bus and store, and a running workflow."""

    w: World
    other: Parts
    workflow_id: UUID

    async def waits(self, at: Parts) -> asyncio.Task[ExecuteResponse]:
        """Make the call again at one gateway, and return its task once it waits."""
        request = ExecuteRequest(code="ask hang")
        task = asyncio.create_task(at.use_cases.agents.execute(SCOPE, "mira", request, WITHDRAWN))
        await self.awaited(at)
        return task

    async def awaited(self, at: Parts) -> None:
        """Wait until a caller waits at one gateway, and every one that has a caller knows it."""
        key = SCOPE, self.workflow_id

        def awaits(one: Parts) -> bool:
            return one.notifier.is_awaited(SCOPE, str(self.workflow_id))

        await eventually(lambda: awaits(at))
        every = (self.w.parts, self.other)
        await eventually(lambda: all(p.elsewhere.is_shared(*key) for p in every if awaits(p)))


@pytest.fixture
async def two(pool: ScopedPools, world: Worlds) -> AsyncGenerator[Two]:
    async with asyncio.timeout(PATIENCE_S), world() as w, _beside(w, pool) as other:
        first = await w.execute("ask hang")
        await w.decide(first["workflow_id"], "approve")
        yield Two(w, other, UUID(first["workflow_id"]))


@asynccontextmanager
async def _beside(w: World, pool: ScopedPools) -> AsyncGenerator[Parts]:
    bus = MemoryBus(w.broker)
    other = assembled(settings(), bus, postgres_stores(pool, PATIENCE_S), w.servers)
    await register_handlers(other)
    yield other
    other.notifier.close()
    await bus.drain(1)


async def _withdraw(at: Parts, task: asyncio.Task[ExecuteResponse]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await at.withdrawals.close()


async def test_a_workflow_goes_on_while_a_caller_of_another_gateway_waits(two: Two) -> None:
    one, other = two.w.parts, two.other
    here, there = await two.waits(one), await two.waits(other)
    await _withdraw(one, here)
    assert two.w.cancelled() == []
    again = await two.waits(one)
    await _withdraw(other, there)
    assert two.w.cancelled() == []
    await _withdraw(one, again)
    (told,) = two.w.cancelled()
    assert told.workflow_id == two.workflow_id


async def test_who_waits_for_the_result_elsewhere_keeps_a_workflow_going(two: Two) -> None:
    one, other = two.w.parts, two.other
    here = await two.waits(one)
    asked = GetTaskResult(workflow_id=two.workflow_id, wait_s=40)
    waiting = asyncio.create_task(other.use_cases.agents.result(MIRA, asked))
    await two.awaited(other)
    await _withdraw(one, here)
    assert two.w.cancelled() == []
    two.w.peers.release.set()
    assert (await waiting).status == "success"


async def test_without_the_bus_nobody_is_asked(two: Two) -> None:
    elsewhere = two.other.elsewhere
    two.w.broker.available = False
    await elsewhere.join(SCOPE, two.workflow_id)
    assert not await elsewhere.await_workflow(SCOPE, two.workflow_id)
    two.w.broker.available = True


async def test_only_shared_workflows_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers_elsewhere, "_MOST_SHARED", 2)
    told: list[tuple[UUID, str]] = []

    class Told:
        async def tell_awaited(self, scope: object, workflow_id: UUID, what: str) -> None:
            told.append((workflow_id, what))

    notifier, instance = LocalNotifier(), uuid4()
    elsewhere = CallersElsewhere(Told(), notifier, instance)  # pyright: ignore[reportArgumentType]
    waited, *others = (uuid4() for _ in range(4))
    with notifier.subscribe(SCOPE, waited):
        for workflow_id in (waited, *others):
            await elsewhere.join(SCOPE, workflow_id)
        told.clear()
        for workflow_id in (waited, others[0], others[-1]):
            assert not await elsewhere.await_workflow(SCOPE, workflow_id)
        assert told == [(waited, "leaving"), (others[-1], "leaving")]
        told.clear()
        own = WorkflowAwaited(
            scope=SCOPE, signal_id=uuid4(), workflow_id=waited, gateway=instance, what="leaving"
        )
        await elsewhere.on_workflow_awaited(own)
        assert told == []
        theirs = own.model_copy(update={"gateway": uuid4()})
        await elsewhere.on_workflow_awaited(theirs)
        assert told == [(waited, "staying")]


async def test_a_gateway_uses_the_clock_that_all_processes_share(pool: ScopedPools) -> None:
    shared = datetime(2031, 7, 1, tzinfo=UTC)
    bus, stores = MemoryBus(MemoryBroker(ManualClock(shared))), postgres_stores(pool, PATIENCE_S)
    assert assembled(settings(), bus, stores, FakeServers()).programs.now() == shared
