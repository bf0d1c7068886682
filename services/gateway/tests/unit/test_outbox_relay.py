"""Publishing the outbox."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from opentelemetry import trace

from libs.pml_common.tests.support.builders import example
from libs.pml_local.tests.support.harness import eventually
from pml_common.background import background
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.outbox_relay import OutboxRelay
from services.gateway.tests.support.builders import SCOPE, workflow
from services.gateway.tests.support.fake_stores import FakeOutbox


async def test_what_could_not_be_published_is_published_by_a_later_sweep() -> None:
    bus, outbox, new = MemoryBus(), FakeOutbox(), workflow()
    relay = OutboxRelay(outbox, bus)
    outbox.put(new.requested, new.traceparent)
    bus.broker.available = False
    await relay.publish(list(outbox.kept.values()))
    await relay.sweep()
    bus.broker.available = True
    assert await bus.history(SCOPE, str(new.workflow_id)) == []
    await relay.sweep()
    (stored,) = await bus.history(SCOPE, str(new.workflow_id))
    assert stored.message == new.requested


async def test_what_nobody_can_publish_does_not_hold_up_its_neighbours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bus, outbox, bad, good = MemoryBus(), FakeOutbox(), workflow(), workflow()
    publish = bus.publish

    async def picky(message: Message) -> int:
        if message is bad.requested:
            raise ValueError("it cannot be written down")
        return await publish(message)

    monkeypatch.setattr(bus, "publish", picky)
    for each in (bad, good):
        outbox.put(each.requested, None)
    await OutboxRelay(outbox, bus).sweep()
    assert len(await bus.history(SCOPE, str(good.workflow_id))) == 1
    assert "it cannot be written down" in caplog.text


async def test_what_is_published_twice_is_stored_once() -> None:
    bus, outbox, new = MemoryBus(), FakeOutbox(), workflow()
    relay = OutboxRelay(outbox, bus)
    outbox.put(new.requested, new.traceparent)
    await relay.publish(list(outbox.kept.values()))
    await relay.sweep()
    assert len(await bus.history(SCOPE, str(new.workflow_id))) == 1


async def test_a_message_that_the_bus_has_already_is_dropped() -> None:
    bus, outbox = MemoryBus(), FakeOutbox()
    relay, message = OutboxRelay(outbox, bus, gather_s=0.0), example(catalog.WORKFLOW_ACCEPTED)
    await bus.publish(message)
    outbox.put(message, None)
    async with background((relay.drop_published(),)):
        await relay.sweep()
        await eventually(lambda: not outbox.kept)


async def test_what_was_published_is_dropped_together() -> None:
    class Counting(FakeOutbox):
        drops = 0

        async def drop(self, message_ids: Sequence[UUID]) -> None:
            self.drops += 1
            await super().drop(message_ids)

    outbox, some = Counting(), [workflow(key=key) for key in "abc"]
    relay = OutboxRelay(outbox, MemoryBus(), gather_s=0.05)
    async with background([relay.drop_published()]):
        for new in some:
            outbox.put(new.requested, new.traceparent)
            await relay.publish([outbox.kept[new.requested.message_id]])
        await eventually(lambda: not outbox.kept)
    assert outbox.drops == 1


async def test_dropping_goes_on_after_it_went_wrong(caplog: pytest.LogCaptureFixture) -> None:
    class ReadOnlyAtFirst(FakeOutbox):
        drops = 0

        async def drop(self, message_ids: Sequence[UUID]) -> None:
            self.drops += 1
            if self.drops == 1:
                raise ValueError("cannot execute DELETE in a read-only transaction")
            await super().drop(message_ids)

    outbox, first, second = ReadOnlyAtFirst(), workflow(key="a"), workflow(key="b")
    relay = OutboxRelay(outbox, MemoryBus(), gather_s=0)
    async with background([relay.drop_published()]):
        for new in (first, second):
            outbox.put(new.requested, new.traceparent)
        await relay.publish([outbox.kept[first.requested.message_id]])
        await eventually(lambda: outbox.drops == 1)
        await relay.publish([outbox.kept[second.requested.message_id]])
        await eventually(lambda: second.requested.message_id not in outbox.kept)
    assert "read-only" in caplog.text


async def test_a_message_is_published_as_part_of_the_trace_it_was_stored_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []

    async def note(message: object) -> int:
        seen.append(trace.get_current_span().get_span_context().trace_id)
        return 1

    bus, new = MemoryBus(), workflow(traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01")
    outbox = FakeOutbox()
    outbox.put(new.requested, new.traceparent)
    monkeypatch.setattr(bus, "publish", note)
    await OutboxRelay(outbox, bus).publish(list(outbox.kept.values()))
    assert [f"{each:032x}" for each in seen] == ["ab" * 16]
