"""Guarantees of consumers that handle batches."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4, uuid5

import pytest

from libs.pml_common.tests.support.fakes import RecordingBatchHandler, RecordingHandler
from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec
from pml_common.bus.codec import Envelope
from pml_common.bus.errors import Fenced, Rejected, Retryable
from pml_common.bus.identity import SIGNATURE
from pml_common.bus.port import Bus, Handled
from pml_common.contracts import catalog
from pml_common.contracts.base import Event
from pml_common.contracts.catalog import Batch, Consumer
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import CatalogChanged
from pml_common.contracts.scope import Scope

SCOPE = Scope(org="acme", project="webapp")
BATCHED = Consumer("registry", catalog.TOOLS_LISTED, ack_wait_s=30, batch=Batch(50, 0.2))
HASTY = replace(BATCHED, max_deliver=3, retry_delays_s=(0.1, 0.2))
SUBJECT = "pml.evt.gateway.tools-listed.v1.acme.webapp.fs"


def tools_listed(server: str = "fs") -> ToolsListed:
    return ToolsListed(event_id=uuid4(), scope=SCOPE, server=server, tools=())


def changed(cause: ToolsListed, server: str = "fs") -> CatalogChanged:
    return CatalogChanged(event_id=uuid5(cause.event_id, "x"), scope=SCOPE, server=server)


class Unlisted(Event):
    """A message outside the catalog, so that publishing it fails."""


async def published(bus: Bus, count: int) -> list[ToolsListed]:
    """Publish messages and return them."""
    messages = [tools_listed() for _ in range(count)]
    for message in messages:
        await bus.publish(message)
    return messages


def ids(messages: Sequence[ToolsListed]) -> list[UUID]:
    return [message.event_id for message in messages]


async def changes(bus: Bus) -> list[UUID]:
    """Return the ids of the stored `catalog-changed`."""
    stored = await bus.history(SCOPE, "fs", of=catalog.CATALOG_CHANGED)
    return [record.message.message_id for record in stored]


async def test_waiting_messages_are_handled_together_up_to_the_most(harness: BusHarness) -> None:
    bus, handler = await harness.connect("registry"), RecordingBatchHandler()
    messages = await published(bus, 120)
    await bus.consume_batches(BATCHED, handler)
    await handler.has_seen(120)
    sizes = [len(batch) for batch in handler.batches]
    assert sizes[:2] == [50, 50]
    assert len(sizes) <= 4
    assert sorted(handler.seen) == sorted(ids(messages))


async def test_rare_messages_are_handled_as_they_come(harness: BusHarness) -> None:
    bus, handler = await harness.connect("registry"), RecordingBatchHandler()
    await bus.consume_batches(replace(BATCHED, batch=Batch(50, 600.0)), handler)
    for seen in range(1, 3):
        await published(bus, 1)
        await handler.has_seen(seen)
    assert [len(batch) for batch in handler.batches] == [1, 1]


async def test_the_facts_of_a_batch_are_published_before_it_is_acknowledged(
    harness: BusHarness,
) -> None:
    bus = await harness.connect("registry")
    first, second = await published(bus, 2)
    unpublishable = Unlisted(event_id=uuid4(), scope=SCOPE)
    handler = RecordingBatchHandler(
        Handled({first.event_id: [unpublishable], second.event_id: [changed(second)]}),
        Handled({first.event_id: [changed(first)]}),
    )
    await bus.consume_batches(HASTY, handler)
    await handler.has_seen(3)
    assert handler.batches == [[first.event_id, second.event_id], [first.event_id]]
    await published(bus, 1)
    await handler.has_seen(4)
    assert await changes(bus) == [changed(second).event_id, changed(first).event_id]


async def test_a_message_that_fails_in_a_batch_is_retried_alone(harness: BusHarness) -> None:
    bus = await harness.connect("registry")
    one, other, third = await published(bus, 3)
    handler = RecordingBatchHandler(
        Handled({third.event_id: [changed(third)]}, {other.event_id: Retryable("not yet")})
    )
    await bus.consume_batches(HASTY, handler)
    await handler.has_seen(4)
    assert handler.batches == [ids([one, other, third]), ids([other])]
    assert await changes(bus) == [changed(third).event_id]
    assert await harness.dead_letters() == []


class Poisoned:
    """A batch handler that fails for every batch with one message."""

    def __init__(self, poison: UUID, error: Exception) -> None:
        self.handled: list[UUID] = []
        self.tries: list[int] = []
        self._poison = poison
        self._error = error

    async def __call__(self, messages: Sequence[ToolsListed]) -> Handled:
        if self._poison in ids(messages):
            self.tries.append(len(messages))
            raise self._error
        self.handled += ids(messages)
        return Handled({message.event_id: [changed(message)] for message in messages})


async def test_one_poisoned_message_of_fifty_is_dead_lettered_alone(harness: BusHarness) -> None:
    bus = await harness.connect("registry")
    messages = await published(bus, 50)
    handler = Poisoned(messages[20].event_id, RuntimeError("broken"))
    await bus.consume_batches(HASTY, handler)
    [letter] = await eventually(harness.dead_letters)
    assert letter.reason == "RuntimeError: broken (delivery 3 of 3)"
    assert codec.decode(ToolsListed, letter.data) == messages[20]
    assert handler.tries == [50, 1, 1, 1]
    expected = sorted(ids([*messages[:20], *messages[21:]]))
    assert sorted(handler.handled) == expected
    assert len(await changes(bus)) == 49


async def test_a_batch_goes_on_while_a_failed_message_is_retried(harness: BusHarness) -> None:
    bus = await harness.connect("registry")
    [poison] = await published(bus, 1)
    handler = Poisoned(poison.event_id, Retryable("never"))
    await bus.consume_batches(replace(HASTY, max_deliver=100, retry_delays_s=(0.01,)), handler)
    await eventually(lambda: len(handler.tries) > 1)
    messages = await published(bus, 60)
    await eventually(lambda: len(handler.handled) == 60)
    assert sorted(handler.handled) == sorted(ids(messages))
    assert set(handler.tries) == {1}  # never together with new ones


async def test_unreadable_and_forged_messages_are_dead_lettered_alone(
    harness: BusHarness,
) -> None:
    bus, handler = await harness.connect("registry"), RecordingBatchHandler()
    before = await published(bus, 2)
    await harness.inject(Envelope(SUBJECT, b'{"server": 7}', {codec.MSG_ID: "odd"}))
    forged = tools_listed()
    headers = {codec.MSG_ID: str(forged.event_id), SIGNATURE: "none"}
    await harness.inject(Envelope(SUBJECT, codec.encode(forged), headers))
    after = await published(bus, 2)
    await bus.consume_batches(BATCHED, handler)
    await handler.has_seen(4)
    assert handler.batches == [ids([*before, *after])]

    async def both() -> list[str] | None:
        letters = [letter.reason for letter in await harness.dead_letters()]
        return letters if len(letters) == 2 else None

    unreadable, unbelieved = await eventually(both)
    assert "not a ToolsListed" in unreadable
    assert "not believed" in unbelieved


async def test_a_message_stored_twice_is_in_a_batch_once(harness: BusHarness) -> None:
    bus, handler = await harness.connect("registry"), RecordingBatchHandler()
    message = tools_listed()
    for message_id in ("as if", "much later"):
        await harness.inject(Envelope(SUBJECT, codec.encode(message), {codec.MSG_ID: message_id}))
    [last] = await published(bus, 1)
    await bus.consume_batches(HASTY, handler)
    await handler.has_seen(2)
    [later] = await published(bus, 1)
    await handler.has_seen(3)
    assert handler.batches == [ids([message, last]), ids([later])]


async def test_a_rejected_and_a_fenced_message_leave_their_neighbours(
    harness: BusHarness,
) -> None:
    bus = await harness.connect("registry")
    rejected, fenced, fine = await published(bus, 3)
    failed = {
        rejected.event_id: Rejected("no such server"),
        fenced.event_id: Fenced("a subject", 3),
    }
    handler = RecordingBatchHandler(Handled({fine.event_id: [changed(fine)]}, failed))
    await bus.consume_batches(replace(HASTY, ack_wait_s=0.4), handler)
    await handler.has_seen(4)
    assert handler.batches[1] == [fenced.event_id]  # after the ack wait
    [letter] = await harness.dead_letters()
    assert letter.reason == "no such server"
    assert await changes(bus) == [changed(fine).event_id]


async def test_the_messages_of_a_replica_that_died_go_to_another(harness: BusHarness) -> None:
    dying, surviving = await harness.connect("registry"), await harness.connect("registry")
    begun = asyncio.Event()

    async def hang(messages: Sequence[ToolsListed]) -> Handled:
        begun.set()
        await asyncio.Event().wait()
        return Handled()

    messages = await published(surviving, 5)
    consumer = replace(HASTY, ack_wait_s=0.4)
    await dying.consume_batches(consumer, hang)
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
    await harness.kill(dying)
    handler = RecordingBatchHandler()
    await surviving.consume_batches(consumer, handler)
    await handler.has_seen(5)
    assert sorted(handler.seen) == sorted(ids(messages))


async def test_two_replicas_share_messages_and_each_is_handled_once(harness: BusHarness) -> None:
    handlers = [RecordingBatchHandler(), RecordingBatchHandler()]
    buses = [await harness.connect("registry") for _ in handlers]
    for bus, handler in zip(buses, handlers, strict=True):
        await bus.consume_batches(replace(BATCHED, batch=Batch(4, 0.05)), handler)
    messages = await published(buses[0], 60)

    def seen() -> list[UUID]:
        return [each for handler in handlers for each in handler.seen]

    await eventually(lambda: len(seen()) >= 60)
    assert sorted(seen()) == sorted(ids(messages))


async def test_a_drain_handles_what_was_gathered(harness: BusHarness) -> None:
    leaving, staying = await harness.connect("registry"), await harness.connect("registry")
    handler, others = RecordingBatchHandler(), RecordingBatchHandler()
    consumer = replace(BATCHED, batch=Batch(50, 0.5))
    await leaving.consume_batches(consumer, handler)
    reader = RecordingHandler()
    await leaving.consume(Consumer("learner", catalog.TOOLS_LISTED), reader)
    messages = await published(staying, 3)
    await reader.has_seen(3)
    await leaving.drain()
    await staying.consume_batches(consumer, others)
    await eventually(lambda: len(handler.seen) + len(others.seen) >= 3)
    assert sorted([*handler.seen, *others.seen]) == sorted(ids(messages))
    assert messages[0].event_id in handler.seen


async def test_facts_of_a_message_outside_the_batch_are_an_error(harness: BusHarness) -> None:
    bus, stranger = await harness.connect("registry"), tools_listed()
    handler = RecordingBatchHandler(Handled({stranger.event_id: [changed(stranger)]}))
    [message] = await published(bus, 1)
    await bus.consume_batches(HASTY, handler)
    await handler.has_seen(2)
    assert handler.batches == [[message.event_id], [message.event_id]]
    assert await changes(bus) == []


async def test_a_consumer_without_a_batch_takes_none(harness: BusHarness) -> None:
    bus = await harness.connect("registry")
    with pytest.raises(ValueError, match="one by one"):
        await bus.consume_batches(replace(BATCHED, batch=None), RecordingBatchHandler())
