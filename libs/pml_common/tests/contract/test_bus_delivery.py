"""Guarantees of durable consumers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4, uuid5

from libs.pml_common.tests.support.fakes import HangingHandler, RecordingHandler
from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec
from pml_common.bus.codec import Envelope
from pml_common.bus.delivery import deliveries
from pml_common.bus.errors import Fenced, Rejected, Retryable, ServedElsewhere
from pml_common.contracts import catalog
from pml_common.contracts.base import Event, Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.catalog import Consumer
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.grant import Grant
from pml_common.contracts.registry import CatalogChanged
from pml_common.contracts.scope import Scope

SCOPE = Scope(org="acme", project="webapp")
PATIENT = Consumer("registry", catalog.TOOLS_LISTED, ack_wait_s=30)
HASTY = replace(PATIENT, ack_wait_s=0.4, max_deliver=3, retry_delays_s=(0.1, 0.2))


def run_workflow() -> RunWorkflow:
    workflow = uuid4()
    grant = Grant(
        scope=SCOPE,
        workflow_id=workflow,
        code_hash="0",
        text_hash="1",
        args_hash="2",
        tools={},
        policy_revision="3",
        expires_at=datetime.now(UTC),
    )
    return RunWorkflow(
        command_id=uuid4(),
        scope=SCOPE,
        workflow_id=workflow,
        principal="ana",
        capability=CapabilityIdentity(capability_id=uuid4(), code_hash="0"),
        instrumented="return 1",
        grant=grant,
        timeout_s=1,
    )


def tools_listed(server: str = "fs") -> ToolsListed:
    return ToolsListed(event_id=uuid4(), scope=SCOPE, server=server, tools=())


class Unlisted(Event):
    """A message outside the catalog, so that publishing it fails."""


async def test_each_consuming_service_gets_a_message_once(harness: BusHarness) -> None:
    sender = await harness.connect("gateway")
    registry, learner = RecordingHandler(), RecordingHandler()
    await (await harness.connect("registry")).consume(PATIENT, registry)
    await (await harness.connect("learner")).consume(replace(PATIENT, service="learner"), learner)
    messages = [tools_listed() for _ in range(20)]
    for message in messages:
        await sender.publish(message)
    await registry.has_seen(20)
    await learner.has_seen(20)
    expected = sorted(message.message_id for message in messages)
    assert sorted(registry.seen) == expected
    assert sorted(learner.seen) == expected


async def test_replicas_share_the_messages_of_their_service(harness: BusHarness) -> None:
    sender = await harness.connect("gateway")
    handled = RecordingHandler()
    busy = [asyncio.Event(), asyncio.Event()]

    for mine in busy:

        async def handle(message: Message, mine: asyncio.Event = mine) -> Sequence[Message]:
            mine.set()
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(event.wait() for event in busy))
            return await handled(message)

        replica = await harness.connect("registry")
        await replica.consume(replace(PATIENT, max_in_flight=1), handle)
    for _ in range(2):
        await sender.publish(tools_listed())
    await handled.has_seen(2)
    assert len(set(handled.seen)) == 2


async def test_messages_published_before_any_consumer_are_delivered(harness: BusHarness) -> None:
    message = tools_listed()
    await (await harness.connect("gateway")).publish(message)
    recorder = RecordingHandler()
    await (await harness.connect("registry")).consume(PATIENT, recorder)
    await recorder.has_seen(1)
    assert recorder.seen == [message.message_id]


async def test_a_failed_message_is_redelivered_after_the_consumers_delay(
    harness: BusHarness,
) -> None:
    bus = await harness.connect("registry")
    recorder = RecordingHandler(Retryable("not yet"), RuntimeError("a bug"))
    await bus.consume(HASTY, recorder)
    await bus.publish(tools_listed())
    await recorder.has_seen(3)
    first, second, third = recorder.times
    assert second - first >= 0.09 * harness.scale
    assert third - second >= 0.19 * harness.scale
    assert await harness.dead_letters() == []


async def test_a_handler_knows_how_often_its_message_was_delivered(harness: BusHarness) -> None:
    sender = await harness.connect("gateway")
    counts = list[int]()

    async def handle(message: ToolsListed) -> Sequence[Message]:
        counts.append(deliveries())
        await asyncio.sleep(0)
        if len(counts) < 3:
            raise Retryable("not yet")
        return ()

    await (await harness.connect("registry")).consume(HASTY, handle)
    await sender.publish(tools_listed())
    await eventually(lambda: len(counts) == 3)
    assert counts == [1, 2, 3]
    assert deliveries() == 0


async def test_a_message_of_a_replica_that_died_goes_to_another(harness: BusHarness) -> None:
    sender = await harness.connect("gateway")
    doomed, heir = await harness.connect("registry"), await harness.connect("registry")
    hanging, recorder = HangingHandler(), RecordingHandler()
    await doomed.consume(HASTY, hanging)
    await sender.publish(tools_listed())
    await hanging.has_begun()
    await harness.kill(doomed)
    await heir.consume(HASTY, recorder)
    await recorder.has_seen(1)


async def test_a_slow_handlers_message_is_not_redelivered(harness: BusHarness) -> None:
    bus, other = await harness.connect("registry"), await harness.connect("registry")
    impatient = replace(HASTY, ack_wait_s=0.6)
    handled, times = RecordingHandler(), 2.5

    async def slow(message: Message) -> Sequence[Message]:
        done = asyncio.Event()
        delay = times * impatient.ack_wait_s * harness.scale
        asyncio.get_running_loop().call_later(delay, done.set)
        await done.wait()
        return await handled(message)

    await bus.consume(impatient, slow)
    await other.consume(impatient, slow)
    await bus.publish(tools_listed())
    await handled.has_seen(1)
    late = tools_listed()
    await bus.publish(late)
    await handled.has_seen(2)
    assert handled.seen[1] == late.message_id


async def test_poison_is_dead_lettered_with_its_reason_and_others_are_handled(
    harness: BusHarness,
) -> None:
    bus = await harness.connect("registry")
    recorder = RecordingHandler(Rejected("no such server"))
    first, second = tools_listed(), tools_listed()
    await bus.publish(first)
    await bus.consume(replace(PATIENT, max_in_flight=1), recorder)
    await bus.publish(second)
    await recorder.has_seen(2)
    assert recorder.seen == [first.message_id, second.message_id]
    [letter] = await harness.dead_letters()
    assert letter.durable == "registry-on-tools-listed"
    assert letter.subject == "pml.evt.gateway.tools-listed.v1.acme.webapp.fs"
    assert letter.reason == "no such server"
    assert letter.deliveries == 1
    assert codec.decode(ToolsListed, letter.data) == first


async def test_an_invalid_body_is_dead_lettered_with_the_reason(harness: BusHarness) -> None:
    bus = await harness.connect("registry")
    recorder = RecordingHandler()
    await bus.consume(PATIENT, recorder)
    subject = "pml.evt.gateway.tools-listed.v1.acme.webapp.fs"
    await harness.inject(Envelope(subject, b'{"server": 7}', {codec.MSG_ID: "odd"}))
    await bus.publish(tools_listed())
    await recorder.has_seen(1)
    [letter] = await harness.dead_letters()
    assert "not a ToolsListed" in letter.reason
    assert letter.data == b'{"server": 7}'


async def test_a_message_that_always_fails_is_dead_lettered_after_its_last_delivery(
    harness: BusHarness,
) -> None:
    bus = await harness.connect("registry")
    recorder = RecordingHandler(*(RuntimeError("broken") for _ in range(3)))
    await bus.consume(replace(HASTY, max_in_flight=1), recorder)
    await bus.publish(tools_listed())
    await recorder.has_seen(3)
    await bus.publish(tools_listed())
    await recorder.has_seen(4)
    [letter] = await harness.dead_letters()
    assert letter.deliveries == 3
    assert letter.reason == "RuntimeError: broken (delivery 3 of 3)"


async def test_deliveries_to_replicas_of_other_scopes_count_for_none(harness: BusHarness) -> None:
    bus = await harness.connect("registry")
    elsewhere = [ServedElsewhere("b")] * 5
    recorder = RecordingHandler(*elsewhere, RuntimeError("broken"), RuntimeError("broken"))
    consumer = replace(HASTY, in_scope=True, max_deliver=100, max_failures=3)
    await bus.consume(consumer, recorder)
    await bus.publish(tools_listed())
    await recorder.has_seen(8)
    assert await harness.dead_letters() == []


async def test_a_message_that_kills_every_replica_is_dead_lettered_by_the_server(
    harness: BusHarness,
) -> None:
    sender = await harness.connect("gateway")
    await sender.publish(tools_listed())
    consumer = replace(HASTY, max_deliver=2)
    for _ in range(2):
        hanging = HangingHandler()
        replica = await harness.connect("registry")
        await replica.consume(consumer, hanging)
        await hanging.has_begun()
        await harness.kill(replica)
    survivor, recorder = await harness.connect("registry"), RecordingHandler()
    await survivor.consume(consumer, recorder)
    [letter] = await eventually(harness.dead_letters)
    assert letter.durable == "registry-on-tools-listed"
    assert letter.subject == "PML_GATEWAY_EVT/1"
    assert letter.reason == "not acknowledged in 2 deliveries"
    assert recorder.seen == []


async def test_returned_messages_are_stored_once_before_the_acknowledgement(
    harness: BusHarness,
) -> None:
    bus = await harness.connect("registry")
    cause = tools_listed()
    fact = CatalogChanged(event_id=uuid5(cause.event_id, "x"), scope=SCOPE, server="fs")
    unpublishable = Unlisted(event_id=uuid4(), scope=SCOPE)
    handler, reader = RecordingHandler([fact, unpublishable], [fact]), RecordingHandler()
    await bus.consume(HASTY, handler)
    await bus.consume(Consumer("gateway", catalog.CATALOG_CHANGED), reader)
    await bus.publish(cause)
    await handler.has_seen(2)
    after = tools_listed()
    await bus.publish(CatalogChanged(event_id=after.event_id, scope=SCOPE, server="git"))
    await reader.has_seen(2)
    stored = await bus.history(SCOPE, "fs", of=catalog.CATALOG_CHANGED)
    assert [record.message for record in stored] == [fact]
    assert reader.seen == [fact.event_id, after.event_id]


async def test_a_fenced_handler_neither_acknowledges_nor_rejects_its_message(
    harness: BusHarness,
) -> None:
    bus = await harness.connect("registry")
    recorder = RecordingHandler(Fenced("pml.evt.executor.trace-recorded.v1.acme.webapp.w", 3))
    await bus.consume(HASTY, recorder)
    published = asyncio.get_running_loop().time()  # before the ack wait, however busy the machine
    await bus.publish(tools_listed())
    await recorder.has_seen(2)
    assert (
        recorder.times[1] - published >= 0.9 * HASTY.ack_wait_s * harness.scale
    )  # waits: no load makes it sooner


async def test_a_command_goes_to_one_replica_and_is_gone_once_done(harness: BusHarness) -> None:
    first, second = await harness.connect("executor"), await harness.connect("executor")
    recorder = RecordingHandler()
    await first.consume(catalog.EXECUTOR_ON_RUN_WORKFLOW, recorder)
    await second.consume(catalog.EXECUTOR_ON_RUN_WORKFLOW, recorder)
    commands = [run_workflow() for _ in range(10)]
    for command in commands:
        await first.publish(command)
    await recorder.has_seen(10)
    assert sorted(recorder.seen) == sorted(command.command_id for command in commands)
