"""Batches of the learner under faults, on real NATS and Postgres."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import pytest
from typing_extensions import override

from libs.pml_common.tests.support.harness import SelfProvisioningBus
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from libs.pml_local.tests.support.tcp_proxy import tcp_proxy
from pml_common.bus.errors import BusUnavailable
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import BatchHandler, Bus, Handled
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import EdgesObserved, LearningUpdated, ListTraces, TracePage
from pml_common.contracts.uses import UsesObserved
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.schema import open_scoped_schema
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.app import serve
from pml_learner.domain.batch import capabilities_of, lessons_of
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.settings import LearnerSettings
from services.learner.tests.support.builders import SCOPE, finished_run, tool_call

pytestmark = pytest.mark.integration

M = TypeVar("M", bound=Message)


class ImpatientBus(SelfProvisioningBus):
    """A bus whose messages are soon delivered to another replica."""

    @override
    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        await super().consume_batches(replace(consumer, ack_wait_s=1.0), handler)


class DyingBus(ImpatientBus):
    """A bus that loses its connection once a batch is handled and `last_words` of its messages are
    published; none is acknowledged."""

    last_words = 0
    died: asyncio.Event

    @override
    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        self.died = asyncio.Event()

        async def handle(messages: Sequence[M]) -> Handled:
            handled = await handler(messages)
            for fact in [each for facts in handled.facts.values() for each in facts][
                : self.last_words
            ]:
                await self.publish(fact)
            await self._client.close()
            self.died.set()
            raise BusUnavailable("died before publishing all")

        await super().consume_batches(consumer, handle)


async def connect(url: str, kind: type[NatsBus] = NatsBus) -> NatsBus:
    return await kind.connect(url, service="learner", identity=all_services_identity())


@asynccontextmanager
async def learner(bus: Bus, dsn: str) -> AsyncGenerator[None]:
    async with serve(LearnerSettings(postgres_dsn=dsn), bus):
        try:
            yield
        finally:
            await bus.drain()


@pytest.fixture
async def executor(nats_url: str) -> AsyncGenerator[NatsBus]:
    """The bus as the executor uses it."""
    bus = await NatsBus.connect(nats_url, service="executor", identity=all_services_identity())
    yield bus
    await bus.drain()


def fifty_runs() -> list[RunFinished]:
    calls = [tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)]
    return [finished_run(calls=calls) for _ in range(50)]


async def publish_all(bus: Bus, runs: Sequence[RunFinished]) -> None:
    for run in runs:
        await bus.publish(run)


async def published(bus: Bus, run: RunFinished, kind: type[M]) -> list[M]:
    entity = str(run.capability.capability_id)
    stored = await bus.history(SCOPE, entity)
    return [each.message for each in stored if isinstance(each.message, kind)]


async def traces(bus: Bus) -> TracePage:
    return await bus.request(catalog.LIST_TRACES, ListTraces(scope=SCOPE))


@pytest.mark.parametrize("last_words", [0, 1])
async def test_a_learner_that_dies_before_it_acknowledges_a_batch_has_no_effect_of_its_own(
    executor: NatsBus, nats_url: str, postgres_dsn: str, last_words: int
) -> None:
    runs = fifty_runs()
    await publish_all(executor, runs)
    dying = await connect(nats_url, DyingBus)
    assert isinstance(dying, DyingBus)
    dying.last_words = last_words
    async with learner(dying, postgres_dsn):
        async with asyncio.timeout(PATIENCE_S):
            await dying.died.wait()
    async with learner(await connect(nats_url, ImpatientBus), postgres_dsn):

        async def both() -> bool:
            found = [
                await published(executor, runs[0], kind)
                for kind in (LearningUpdated, EdgesObserved)
            ]
            return all(found)

        await eventually(both)
        (updated,) = await published(executor, runs[0], LearningUpdated)
        (edges,) = await published(executor, runs[0], EdgesObserved)
        assert (updated.revision, updated.usage.count) == (50, 50)
        assert (edges.runs, [edge.count for edge in edges.edges]) == (50, [50])
        assert (await traces(executor)).total == 50
        last = finished_run()
        await executor.publish(last)

        async def next_update() -> bool:
            return len(await published(executor, last, LearningUpdated)) == 2

        await eventually(next_update)  # the redelivered ones taught nothing
        newest = (await published(executor, last, LearningUpdated))[-1]
        assert (newest.revision, newest.usage.count) == (51, 51)


async def test_one_poisoned_run_of_fifty_is_not_learned_and_the_others_are(
    executor: NatsBus, nats_url: str, postgres_dsn: str
) -> None:
    runs = fifty_runs()
    twin = finished_run().model_copy(update={"trace_id": runs[0].trace_id})  # cannot be stored
    await publish_all(executor, [*runs[:25], twin, *runs[25:49]])
    async with learner(await connect(nats_url), postgres_dsn):

        async def all_learned() -> bool:
            return (await traces(executor)).total == 49

        await eventually(all_learned)

        async def all_published() -> bool:
            updates = await published(executor, runs[0], LearningUpdated)
            edges = await published(executor, runs[0], EdgesObserved)
            counted = sum(edge.count for each in edges for edge in each.edges)
            return max((each.usage.count for each in updates), default=0) == counted == 49

        await eventually(all_published)
        assert twin.workflow_id not in {
            trace.workflow_id for trace in (await traces(executor)).traces
        }


async def test_an_outage_of_postgres_delays_a_batch_and_loses_nothing(
    executor: NatsBus, nats_url: str, postgres_dsn: str
) -> None:
    runs = fifty_runs()
    async with (
        tcp_proxy(postgres_dsn) as proxy,
        learner(await connect(nats_url), proxy.dsn),
    ):
        await proxy.cut()
        await publish_all(executor, runs)
        await proxy.listen()

        async def all_learned() -> bool:
            updates = await published(executor, runs[0], LearningUpdated)
            return any(update.usage.count == 50 for update in updates)

        await eventually(all_learned)
        assert (await traces(executor)).total == 50
        assert await executor.dead_letters() == []


async def test_a_batch_whose_commit_fails_is_stored_once_it_is_delivered_again(
    postgres_dsn: str,
) -> None:
    runs = fifty_runs()
    consumer = catalog.LEARNER_ON_RUN_FINISHED.durable
    async with (
        tcp_proxy(postgres_dsn) as proxy,
        open_scoped_schema(proxy.dsn, "learner", "pml_learner") as pool,
    ):
        store = PostgresTraceStore(pool)

        async def lose_the_connection() -> None:
            async with store.batch([run.event_id for run in runs], consumer) as batch:
                before = await batch.experience_of(capabilities_of(runs))
                lessons = lessons_of(before, runs, TdRule())
                await batch.save([each for of_run in lessons.values() for each in of_run], {})
                await proxy.cut()

        with pytest.raises(StorageUnavailable):
            await lose_the_connection()
        await proxy.listen()
        handled = await on_runs_finished(runs, store, TdRule())
        again = await on_runs_finished(runs[::-1], store, TdRule())
        facts = [fact for facts in handled.facts.values() for fact in facts]
        assert [type(fact) for fact in facts] == [LearningUpdated, EdgesObserved, UsesObserved]
        assert [fact for facts in again.facts.values() for fact in facts] == facts
        assert (await store.traces(ListTraces(scope=SCOPE))).total == 50
