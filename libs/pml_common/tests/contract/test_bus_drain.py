"""Guarantees of a drain."""

import asyncio
from uuid import UUID, uuid4

import pytest

from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import BusUnavailable
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.base import Message
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.scope import Scope

SCOPE = Scope(org="acme", project="webapp")


def entry(workflow: UUID) -> TraceRecorded:
    return TraceRecorded(
        event_id=uuid4(), scope=SCOPE, workflow_id=workflow, entries=(), previous=0
    )


def rejection(workflow: UUID) -> AnalysisRejected:
    return AnalysisRejected(event_id=uuid4(), scope=SCOPE, workflow_id=workflow, diagnostics=())


async def test_a_drained_bus_finishes_running_handlers_and_receives_nothing_new(
    harness: BusHarness,
) -> None:
    leaving, staying = await harness.connect("learner"), await harness.connect("learner")
    begun, release = asyncio.Event(), asyncio.Event()
    follow_up, finished = rejection(uuid4()), RecordingHandler()
    consumer = catalog.Consumer("learner", catalog.TRACE_RECORDED, max_in_flight=1)

    async def slow(message: TraceRecorded) -> list[Message]:
        begun.set()
        await release.wait()
        await finished(message)
        return [follow_up]

    await leaving.consume(consumer, slow)
    running, waiting = entry(uuid4()), entry(uuid4())
    await staying.publish(running)
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
    draining = asyncio.create_task(leaving.drain())
    await staying.publish(waiting)
    others = RecordingHandler()
    await staying.consume(consumer, others)
    await others.has_seen(1)
    release.set()
    async with asyncio.timeout(PATIENCE_S):
        await draining
        await leaving.drain()
    assert finished.seen == [running.event_id]
    assert others.seen == [waiting.event_id]
    stored = await staying.history(SCOPE, follow_up.entity)
    assert [record.message for record in stored] == [follow_up]


async def test_a_drain_cancels_slow_handlers_and_another_replica_takes_over(
    harness: BusHarness,
) -> None:
    leaving, staying = await harness.connect("learner"), await harness.connect("learner")
    consumer = catalog.Consumer("learner", catalog.TRACE_RECORDED)
    begun, cancelled, recorder = asyncio.Event(), asyncio.Event(), RecordingHandler()

    async def endless(message: TraceRecorded) -> list[Message]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return []

    await leaving.consume(consumer, endless)
    message = entry(uuid4())
    await staying.publish(message)
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
    await leaving.drain(0.05)
    assert cancelled.is_set()
    await staying.consume(consumer, recorder)
    await recorder.has_seen(1)


async def test_a_drained_bus_is_unavailable_and_ends_its_followers(harness: BusHarness) -> None:
    bus = await harness.connect("executor")
    assert await bus.healthy()
    async with bus.follow(SCOPE, "x") as events:
        await bus.drain()
        async with asyncio.timeout(PATIENCE_S):
            assert [event async for event in events] == []
    assert not await bus.healthy()
    with pytest.raises(BusUnavailable):
        await bus.publish(entry(uuid4()))
    with pytest.raises(BusUnavailable):
        await bus.history(SCOPE, "x")
