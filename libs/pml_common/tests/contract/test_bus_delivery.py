"""What durable consumers promise."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4, uuid5

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus import codec
from pml_common.bus.codec import Envelope
from pml_common.bus.errors import Fenced, Rejected, Retryable
from pml_common.bus.testing import BusWorld, Hanging, Recorder
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
    """A message that nobody catalogued, so that publishing it fails."""


async def test_each_consuming_service_gets_a_message_once(world: BusWorld) -> None:
    sender = await world.connect("gateway")
    registry, learner = Recorder(), Recorder()
    await (await world.connect("registry")).consume(PATIENT, registry)
    await (await world.connect("learner")).consume(replace(PATIENT, service="learner"), learner)
    messages = [tools_listed() for _ in range(20)]
    for message in messages:
        await sender.publish(message)
    await registry.has_seen(20)
    await learner.has_seen(20)
    expected = sorted(message.message_id for message in messages)
    assert sorted(registry.seen) == expected
    assert sorted(learner.seen) == expected


async def test_replicas_share_the_messages_of_their_service(world: BusWorld) -> None:
    sender = await world.connect("gateway")
    handled = Recorder()
    busy = [asyncio.Event(), asyncio.Event()]

    for mine in busy:

        async def handle(message: Message, mine: asyncio.Event = mine) -> Sequence[Message]:
            mine.set()
            async with asyncio.timeout(30):
                await asyncio.gather(*(event.wait() for event in busy))
            return await handled(message)

        replica = await world.connect("registry")
        await replica.consume(replace(PATIENT, max_in_flight=1), handle)
    for _ in range(2):
        await sender.publish(tools_listed())
    await handled.has_seen(2)
    assert len(set(handled.seen)) == 2


async def test_what_was_published_before_anyone_consumed_is_delivered(world: BusWorld) -> None:
    message = tools_listed()
    await (await world.connect("gateway")).publish(message)
    recorder = Recorder()
    await (await world.connect("registry")).consume(PATIENT, recorder)
    await recorder.has_seen(1)
    assert recorder.seen == [message.message_id]


async def test_a_failed_message_comes_again_after_the_consumers_delay(world: BusWorld) -> None:
    bus = await world.connect("registry")
    recorder = Recorder(Retryable("not yet"), RuntimeError("a bug"))
    await bus.consume(HASTY, recorder)
    await bus.publish(tools_listed())
    await recorder.has_seen(3)
    first, second, third = recorder.times
    assert second - first >= 0.09 * world.scale
    assert third - second >= 0.19 * world.scale
    assert await world.dead_letters() == []


async def test_a_message_of_a_replica_that_died_goes_to_another(world: BusWorld) -> None:
    sender = await world.connect("gateway")
    doomed, heir = await world.connect("registry"), await world.connect("registry")
    hanging, recorder = Hanging(), Recorder()
    await doomed.consume(HASTY, hanging)
    await sender.publish(tools_listed())
    await hanging.has_begun()
    await world.kill(doomed)
    await heir.consume(HASTY, recorder)
    await recorder.has_seen(1)


async def test_a_slow_handler_keeps_its_message_to_itself(world: BusWorld) -> None:
    bus, other = await world.connect("registry"), await world.connect("registry")
    impatient = replace(HASTY, ack_wait_s=0.6)
    handled, times = Recorder(), 2.5

    async def slow(message: Message) -> Sequence[Message]:
        done = asyncio.Event()
        delay = times * impatient.ack_wait_s * world.scale
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


async def test_poison_is_buried_with_its_reason_and_its_neighbours_flow(world: BusWorld) -> None:
    bus = await world.connect("registry")
    recorder = Recorder(Rejected("no such server"))
    first, second = tools_listed(), tools_listed()
    await bus.publish(first)
    await bus.consume(replace(PATIENT, max_in_flight=1), recorder)
    await bus.publish(second)
    await recorder.has_seen(2)
    assert recorder.seen == [first.message_id, second.message_id]
    [letter] = await world.dead_letters()
    assert letter.durable == "registry-on-tools-listed"
    assert letter.subject == "pml.evt.gateway.tools-listed.v1.acme.webapp.fs"
    assert letter.reason == "no such server"
    assert letter.deliveries == 1
    assert codec.decode(ToolsListed, letter.data) == first


async def test_what_is_no_contract_is_buried_and_says_why(world: BusWorld) -> None:
    bus = await world.connect("registry")
    recorder = Recorder()
    await bus.consume(PATIENT, recorder)
    subject = "pml.evt.gateway.tools-listed.v1.acme.webapp.fs"
    await world.inject(Envelope(subject, b'{"server": 7}', {codec.MSG_ID: "odd"}))
    await bus.publish(tools_listed())
    await recorder.has_seen(1)
    [letter] = await world.dead_letters()
    assert "not a ToolsListed" in letter.reason
    assert letter.data == b'{"server": 7}'


async def test_a_message_that_always_fails_is_buried_after_its_last_delivery(
    world: BusWorld,
) -> None:
    bus = await world.connect("registry")
    recorder = Recorder(*(RuntimeError("broken") for _ in range(3)))
    await bus.consume(replace(HASTY, max_in_flight=1), recorder)
    await bus.publish(tools_listed())
    await recorder.has_seen(3)
    await bus.publish(tools_listed())
    await recorder.has_seen(4)
    [letter] = await world.dead_letters()
    assert letter.deliveries == 3
    assert letter.reason == "RuntimeError: broken (delivery 3 of 3)"


async def test_a_message_that_kills_every_replica_is_buried_by_the_server(
    world: BusWorld,
) -> None:
    sender = await world.connect("gateway")
    await sender.publish(tools_listed())
    consumer = replace(HASTY, max_deliver=2)
    for _ in range(2):
        hanging = Hanging()
        replica = await world.connect("registry")
        await replica.consume(consumer, hanging)
        await hanging.has_begun()
        await world.kill(replica)
    survivor, recorder = await world.connect("registry"), Recorder()
    await survivor.consume(consumer, recorder)
    [letter] = await eventually(world.dead_letters)
    assert letter.durable == "registry-on-tools-listed"
    assert letter.subject == "PML_GATEWAY_EVT/1"
    assert letter.reason == "not acknowledged in 2 deliveries"
    assert recorder.seen == []


async def test_facts_are_stored_before_the_acknowledgement_and_once(world: BusWorld) -> None:
    bus = await world.connect("registry")
    cause = tools_listed()
    fact = CatalogChanged(event_id=uuid5(cause.event_id, "x"), scope=SCOPE, server="fs")
    unpublishable = Unlisted(event_id=uuid4(), scope=SCOPE)
    handler, reader = Recorder([fact, unpublishable], [fact]), Recorder()
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


async def test_a_fenced_handler_leaves_its_message_to_the_new_holder(world: BusWorld) -> None:
    bus = await world.connect("registry")
    recorder = Recorder(Fenced("pml.evt.executor.trace-recorded.v1.acme.webapp.w", 3))
    await bus.consume(HASTY, recorder)
    await bus.publish(tools_listed())
    await recorder.has_seen(2)
    assert recorder.times[1] - recorder.times[0] >= 0.9 * HASTY.ack_wait_s * world.scale


async def test_a_command_goes_to_one_replica_and_is_gone_once_done(world: BusWorld) -> None:
    first, second = await world.connect("executor"), await world.connect("executor")
    recorder = Recorder()
    await first.consume(catalog.EXECUTOR_ON_RUN_WORKFLOW, recorder)
    await second.consume(catalog.EXECUTOR_ON_RUN_WORKFLOW, recorder)
    commands = [run_workflow() for _ in range(10)]
    for command in commands:
        await first.publish(command)
    await recorder.has_seen(10)
    assert sorted(recorder.seen) == sorted(command.command_id for command in commands)
