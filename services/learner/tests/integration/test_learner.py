"""The learner service on real NATS and Postgres."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TypeVar
from uuid import uuid4

import pytest

from libs.pml_common.tests.support.fakes import CrashAfterCommitBus
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.tcp_proxy import tcp_proxy
from pml_common.bus.errors import QueryFailed
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import WorkflowDataDeleted
from pml_common.contracts.learner import (
    EdgesObserved,
    LearningUpdated,
    ListTraces,
    RebuildLearning,
    TracePage,
)
from pml_learner.app import serve
from pml_learner.settings import LearnerSettings
from services.learner.tests.support.builders import SCOPE, finished_run, tool_call

pytestmark = pytest.mark.integration

M = TypeVar("M", bound=Message)


@asynccontextmanager
async def _learner(bus: Bus, dsn: str) -> AsyncGenerator[Bus]:
    async with serve(LearnerSettings(postgres_dsn=dsn), bus):
        try:
            yield bus
        finally:
            await bus.drain()


async def _published(bus: Bus, run: RunFinished, kind: type[M]) -> list[M]:
    entity = str(run.capability.capability_id)
    return [
        recorded.message
        for recorded in await bus.history(SCOPE, entity)
        if isinstance(recorded.message, kind)
    ]


async def _traces(bus: Bus) -> TracePage:
    return await bus.request(catalog.LIST_TRACES, ListTraces(scope=SCOPE))


async def test_a_run_is_learned_published_and_can_be_queried(
    nats_url: str, postgres_dsn: str
) -> None:
    executor = await NatsBus.connect(nats_url, service="executor", identity=all_services_identity())
    try:
        async with _learner(
            await NatsBus.connect(nats_url, service="learner", identity=all_services_identity()),
            postgres_dsn,
        ):
            run = finished_run(calls=[tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)])
            await executor.publish(run)

            async def published() -> Sequence[EdgesObserved]:
                return await _published(executor, run, EdgesObserved)

            (observed,) = await eventually(published)
            assert [(edge.from_tool, edge.to_tool) for edge in observed.edges] == [
                ("fs:stat", "fs:read")
            ]
            (updated,) = await _published(executor, run, LearningUpdated)
            assert (updated.revision, updated.priority) == (1, 1.0)
            again = await executor.request(catalog.REBUILD_LEARNING, RebuildLearning(scope=SCOPE))
            assert (again.rebuilt, again.traces, again.changed, again.left) == (1, 1, 0, 0)
            (trace,) = (await _traces(executor)).traces
            assert trace.trace_id == run.trace_id
    finally:
        await executor.drain()


async def test_the_traces_of_a_deleted_workflow_go_and_none_comes_again(
    nats_url: str, postgres_dsn: str
) -> None:
    identity = all_services_identity()
    executor = await NatsBus.connect(nats_url, service="executor", identity=identity)
    gateway = await NatsBus.connect(nats_url, service="gateway", identity=identity)
    run, later = finished_run(), finished_run()
    try:
        learner = await NatsBus.connect(nats_url, service="learner", identity=identity)
        async with _learner(learner, postgres_dsn):
            await executor.publish(run)

            async def traced() -> bool:
                return (await _traces(executor)).total == 1

            await eventually(traced)
            await gateway.publish(_deletion(run))

            async def gone() -> bool:
                return (await _traces(executor)).total == 0

            await eventually(gone)
            await executor.publish(later)
            await eventually(traced)

            async def learned() -> bool:
                told = await _published(executor, later, LearningUpdated)
                return max(each.usage.count for each in told) == 2

            await eventually(learned)
    finally:
        await gateway.drain()
        await executor.drain()


def _deletion(run: RunFinished) -> WorkflowDataDeleted:
    return WorkflowDataDeleted(
        scope=run.scope,
        event_id=uuid4(),
        workflow_id=run.workflow_id,
        deleted_by=run.principal,
        deleted_at=datetime.fromtimestamp(run.started_at / 1000 + 60, UTC),
    )


async def test_twenty_runs_at_once_count_twenty(nats_url: str, postgres_dsn: str) -> None:
    executor = await NatsBus.connect(nats_url, service="executor", identity=all_services_identity())
    runs = [finished_run() for _ in range(20)]
    try:
        async with (
            _learner(
                await NatsBus.connect(
                    nats_url, service="learner", identity=all_services_identity()
                ),
                postgres_dsn,
            ),
            _learner(
                await NatsBus.connect(
                    nats_url, service="learner", identity=all_services_identity()
                ),
                postgres_dsn,
            ),
        ):
            await asyncio.gather(*(executor.publish(run) for run in runs))

            async def all_learned() -> list[LearningUpdated]:
                updates = await _published(executor, runs[0], LearningUpdated)
                return updates if any(update.revision == 20 for update in updates) else []

            updates = await eventually(all_learned)
            assert len({update.revision for update in updates}) == len(updates)
            last = max(updates, key=lambda update: update.revision)
            assert last.usage.count == sum(stats.count for stats in last.learning.paths) == 20
            assert (await _traces(executor)).total == 20
    finally:
        await executor.drain()


async def test_messages_lost_in_a_crash_are_published_once_and_nothing_is_duplicated(
    nats_url: str, postgres_dsn: str
) -> None:
    executor = await NatsBus.connect(nats_url, service="executor", identity=all_services_identity())
    run = finished_run()
    try:
        bus = await CrashAfterCommitBus.connect(
            nats_url, service="learner", identity=all_services_identity()
        )
        async with _learner(bus, postgres_dsn):
            await executor.publish(run)

            async def published() -> Sequence[LearningUpdated]:
                return await _published(executor, run, LearningUpdated)

            (updated,) = await eventually(published)
            assert (updated.revision, updated.usage.count) == (1, 1)
            assert (await _traces(executor)).total == 1
    finally:
        await executor.drain()


async def test_an_outage_of_postgres_is_reported_and_survived(
    nats_url: str, postgres_dsn: str
) -> None:
    executor = await NatsBus.connect(nats_url, service="executor", identity=all_services_identity())
    run = finished_run()
    try:
        async with (
            tcp_proxy(postgres_dsn) as proxy,
            _learner(
                await NatsBus.connect(
                    nats_url, service="learner", identity=all_services_identity()
                ),
                proxy.dsn,
            ),
        ):
            await proxy.cut()
            await executor.publish(run)
            with pytest.raises(QueryFailed) as failure:
                await _traces(executor)
            assert failure.value.code == "unavailable"
            await proxy.listen()

            async def published() -> Sequence[LearningUpdated]:
                return await _published(executor, run, LearningUpdated)

            (updated,) = await eventually(published)
            assert updated.revision == 1
            assert await executor.dead_letters() == []
    finally:
        await executor.drain()
