"""Consumers that wait for one message for long, and a message that the server has lost."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from libs.pml_common.tests.integration.test_bus_flipped_bit import SCOPE, flip_a_bit
from libs.pml_common.tests.support.builders import after, run_finished
from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_common.tests.support.measured import measured
from libs.pml_local.tests.support.harness import RunningNats, eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import BusUnavailable, Retryable
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.publish import NatsPublisher
from pml_common.bus.stalls import Progress
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished

pytestmark = pytest.mark.integration

OF_CONSUMER = {"messaging_consumer_group_name": "learner-on-run-finished"}
CONSUMER = replace(catalog.LEARNER_ON_RUN_FINISHED, batch=None, stalls_after_s=0.0)


async def connected(server: RunningNats, service: str) -> NatsBus:
    return await NatsBus.connect(server.url, service=service, identity=all_services_identity())


async def ended(executor: NatsBus, principal: str) -> RunFinished:
    end = run_finished(SCOPE, uuid4()).model_copy(update={"principal": principal})
    await executor.publish(after(0, end))
    return end


async def look(bus: NatsBus) -> str | None:
    with suppress(BusUnavailable):
        return await bus.stalled()
    return "cut off"


def fail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next store of a message find no server."""
    store, failures = NatsPublisher.store, [BusUnavailable("away")]

    async def failing(self: NatsPublisher, *what: Any) -> int:
        if failures:
            raise failures.pop()
        return await store(self, *what)

    monkeypatch.setattr(NatsPublisher, "store", failing)


@pytest.mark.parametrize("is_cut_off", [False, True])
async def test_a_message_lost_after_its_delivery_is_skipped_with_a_dead_letter(
    nats_server: RunningNats,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_cut_off: bool,
) -> None:
    """Also if the look ends between the two."""
    executor, learner = [await connected(nats_server, each) for each in ("executor", "learner")]
    begun, later = asyncio.Event(), RecordingHandler()

    async def hang(message: RunFinished) -> list[Message]:
        begun.set()
        await asyncio.Event().wait()
        return []

    await learner.consume(CONSUMER, hang)
    await ended(executor, "whose end is lost")
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
    await learner.drain(0.0)
    await nats_server.stop()
    flip_a_bit(tmp_path / "nats" / "store", b"whose end is lost")
    await nats_server.start()
    await eventually(executor.healthy)

    learner = await connected(nats_server, "learner")
    await learner.consume(CONSUMER, later)
    known = await ended(executor, "ann")
    await later.has_seen(1)
    if is_cut_off:
        fail_once(monkeypatch)
    told = [await look(learner) for _ in range(3 + is_cut_off)]
    assert ("cut off" in told) == is_cut_off
    assert "learner-on-run-finished: PML_EXECUTOR_EVT/1 was lost, and is skipped" in told
    assert told[-1] is None
    assert later.seen == [known.event_id]
    [letter] = await learner.dead_letters()
    assert (letter.durable, letter.subject) == ("learner-on-run-finished", "PML_EXECUTOR_EVT/1")
    assert "the server has lost PML_EXECUTOR_EVT/1" in letter.reason
    await asyncio.gather(executor.drain(0.1), learner.drain(0.1))


async def test_a_message_that_is_retried_is_named_and_not_skipped(
    nats_server: RunningNats,
) -> None:
    executor, learner = [await connected(nats_server, each) for each in ("executor", "learner")]
    away = RecordingHandler(*(Retryable("away") for _ in range(1000)))
    await learner.consume(replace(CONSUMER, retry_delays_s=(0.05,)), away)
    await ended(executor, "ann")
    await ended(executor, "bob")
    await away.has_seen(2)
    with measured() as found:
        await learner.stalled()
        told = await learner.stalled()
        assert found.value("pml_bus_pending_age_seconds", **OF_CONSUMER) > 0
    assert told == "learner-on-run-finished has waited 0 s for PML_EXECUTOR_EVT/1"
    assert await learner.dead_letters() == []
    await asyncio.gather(executor.drain(0.1), learner.drain(0.1))


def test_a_wait_begins_anew_with_each_message() -> None:
    progress = Progress()
    assert progress.stalled_s(0, 10.0, is_empty=True) == 0.0
    assert progress.stalled_s(0, 20.0, is_empty=False) == 0.0
    assert progress.stalled_s(0, 320.0, is_empty=False) == 300.0
    assert progress.stalled_s(7, 330.0, is_empty=False) == 0.0
    assert progress.stalled_s(7, 340.0, is_empty=True) == 0.0
