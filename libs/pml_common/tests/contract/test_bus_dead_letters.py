"""Dead letters are handled by another service; forged ones are ignored."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from libs.pml_common.tests.support.builders import after, appended_bytes
from libs.pml_common.tests.support.fakes import HangingHandler, RecordingHandler
from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec
from pml_common.bus.codec import Envelope
from pml_common.bus.dead_letters import (
    DEAD_LETTER_SIGNATURE,
    DELIVERIES,
    MESSAGE_ID,
    DeadLetterReader,
    build_dead_letter,
    parse_dead_letter,
)
from pml_common.bus.delivery import Receiver
from pml_common.bus.errors import Rejected, Unreadable
from pml_common.bus.identity import SIGNATURE, Identity, all_services_identity
from pml_common.bus.port import Bus, DeadMessage
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.base import Message
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.trace import LogWritten
from pml_common.signing import SigningKey, TrustedKeys
from pml_common.testing.memory_broker import MemoryPayloads
from pml_common.testing.memory_bus import MemoryBus

SCOPE = Scope(org="acme", project="webapp")
READER = catalog.GATEWAY_ON_DEAD_LETTER
CONSUMER = replace(
    catalog.GATEWAY_ON_ANALYSIS_REJECTED, ack_wait_s=1.0, retry_delays_s=(0.01,), max_failures=2
)


def rejection(text: str = "") -> AnalysisRejected:
    found = (Diagnostic(severity="error", message=text, line=1, column=1, source_line=""),)
    return AnalysisRejected(event_id=uuid4(), scope=SCOPE, workflow_id=uuid4(), diagnostics=found)


def entry(workflow: UUID, text: str = "") -> TraceRecorded:
    line = LogWritten(trace_id=workflow, ts=0, level="info", message=text)
    return TraceRecorded(
        event_id=uuid4(), scope=SCOPE, workflow_id=workflow, entries=(line,), previous=0
    )


class Heard:
    """Records dead messages; raises `errors` first."""

    def __init__(self, *errors: Exception) -> None:
        self.buried: asyncio.Queue[DeadMessage] = asyncio.Queue()
        self._errors = list(errors)

    async def __call__(self, buried: DeadMessage) -> Sequence[Message]:
        if self._errors:
            raise self._errors.pop(0)
        self.buried.put_nowait(buried)
        return ()

    async def next(self) -> DeadMessage:
        async with asyncio.timeout(PATIENCE_S):
            return await self.buried.get()


async def hearing(bus: Bus, *errors: Exception) -> Heard:
    heard = Heard(*errors)
    await bus.consume_dead_letters(replace(READER, retry_delays_s=(0.01,)), heard)
    return heard


async def test_a_dead_letter_is_handled_with_its_message_and_reason(
    harness: BusHarness,
) -> None:
    bus, message = await harness.connect("gateway"), rejection()
    heard = await hearing(bus)
    await bus.consume(CONSUMER, RecordingHandler(Rejected("no such\nworkflow")))
    await bus.publish(message)
    assert await heard.next() == DeadMessage(
        consumer="gateway-on-analysis-rejected",
        message_id=str(message.event_id),
        scope=SCOPE,
        entity=str(message.workflow_id),
        reason="no such workflow",
    )


async def test_a_dead_letter_waits_for_its_consumer_and_is_retried(
    harness: BusHarness,
) -> None:
    bus, message = await harness.connect("gateway"), rejection()
    recorder = RecordingHandler(RuntimeError("broken"), RuntimeError("broken"))
    await bus.consume(CONSUMER, recorder)
    await bus.publish(message)
    await recorder.has_seen(2)
    heard = await hearing(await harness.connect("gateway"), RuntimeError("not now"))
    buried = await heard.next()
    assert (buried.message_id, buried.reason) == (
        str(message.event_id),
        "RuntimeError: broken (delivery 2 of 2)",
    )


async def test_a_message_that_the_server_gave_up_is_handled_too(harness: BusHarness) -> None:
    bus, message = await harness.connect("gateway"), rejection("it killed every replica")
    heard = await hearing(bus)
    await bus.publish(message)
    consumer = replace(CONSUMER, max_deliver=2)
    for _ in range(2):
        hanging = HangingHandler()
        replica = await harness.connect("gateway")
        await replica.consume(consumer, hanging)
        await hanging.has_begun()
        await harness.kill(replica)
    await (await harness.connect("gateway")).consume(consumer, RecordingHandler())
    buried = await heard.next()
    assert (buried.consumer, buried.message_id) == (
        consumer.durable,
        str(message.event_id),
    )
    assert buried.reason == "not acknowledged in 2 deliveries"


async def test_a_dead_lettered_forgery_is_ignored(harness: BusHarness) -> None:
    bus, message = await harness.connect("gateway"), rejection()
    heard = await hearing(bus)
    await bus.consume(CONSUMER, RecordingHandler(Rejected("real")))
    subject = f"pml.evt.analyzer.analysis-rejected.v1.{SCOPE}.{message.workflow_id}"
    for n, signature in enumerate(
        ("", " ", "a.b", all_services_identity().sign("executor", b"it"))
    ):
        headers = {codec.MSG_ID: f"forged-{n}", SIGNATURE: signature or "none"}
        await harness.inject(Envelope(subject, codec.encode(message), headers))
    await bus.publish(message)
    assert (await heard.next()).reason == "real"
    assert heard.buried.empty()
    assert len(await harness.dead_letters()) == 5


async def test_an_unreadable_signed_message_is_handled_without_its_message(
    harness: BusHarness,
) -> None:
    bus, workflow = await harness.connect("gateway"), uuid4()
    heard = await hearing(bus)
    subject = f"pml.evt.analyzer.analysis-rejected.v1.{SCOPE}.{workflow}"
    await harness.inject(Envelope(subject, b"{}", {codec.MSG_ID: "garbage"}))
    await bus.consume(CONSUMER, RecordingHandler())
    buried = await heard.next()
    assert (buried.message_id, buried.entity) == ("garbage", str(workflow))
    assert "not a AnalysisRejected" in buried.reason


async def test_the_readable_part_of_a_history_is_salvaged(harness: BusHarness) -> None:
    bus, workflow = await harness.connect("executor"), uuid4()
    first, last = entry(workflow), after(3, entry(workflow, "last"))
    await bus.publish(first)
    await harness.inject(appended_bytes(after(1, first), b"not json"))
    await harness.inject(appended_bytes(after(2, first), b"", payload="0" * 64))
    await bus.publish(last)
    await bus.publish(entry(uuid4()))
    found = await bus.salvage(catalog.TRACE_RECORDED, SCOPE, str(workflow))
    assert [each.sequence for each in found] == [1, 2, 3, 4]
    read = [each.message for each in found if not isinstance(each, Unreadable)]
    assert read == [first, last]
    [odd, lost] = [each.why for each in found if isinstance(each, Unreadable)]
    assert odd.startswith("not a TraceRecorded")
    assert "is no longer in PML_BODIES" in lost


async def published() -> Envelope:
    """Build the envelope that the message's sender publishes."""
    bus, stored = MemoryBus(), list[Envelope]()
    bus.broker.subscriptions.append(stored.append)
    await bus.publish(rejection())
    return stored[0]


def letter(of: Envelope, identity: Identity | None = None) -> Envelope:
    return build_dead_letter(CONSUMER, identity or all_services_identity(), of, "why", 3)


def with_header(of: Envelope, name: str, value: str) -> Envelope:
    written = letter(of)
    return replace(written, headers={**written.headers, name: value})


def stranger() -> Identity:
    return Identity([SigningKey.generate("gateway")], TrustedKeys())


def under(of: Envelope, durable: str) -> Envelope:
    return replace(letter(of), subject=f"pml.dead.{durable}")


FORGERIES: dict[str, Callable[[Envelope], Envelope]] = {
    "no headers": lambda it: replace(letter(it), headers={}),
    "no burier": lambda it: with_header(it, DEAD_LETTER_SIGNATURE, ""),
    "a stranger": lambda it: letter(it, stranger()),
    "nobody": lambda it: letter(it, Identity([], TrustedKeys())),
    "another message id": lambda it: with_header(it, MESSAGE_ID, "another"),
    "another count": lambda it: with_header(it, DELIVERIES, "4"),
    "another body": lambda it: replace(letter(it), data=b"{}"),
    "another consumer": lambda it: under(it, "gateway-on-run-finished"),
    "an unknown consumer": lambda it: under(it, "cook-on-dinner"),
    "what needs no signature": lambda it: under(it, "registry-on-learning-updated"),
}


async def opened(envelope: Envelope) -> DeadMessage | None:
    bus = MemoryBus()
    receiver = Receiver(MemoryPayloads(bus.broker), all_services_identity(), bus.publish)
    return await DeadLetterReader(receiver, bus.broker.fetch).open(parse_dead_letter(envelope))


async def test_a_dead_letter_signed_by_its_consumers_service_is_accepted() -> None:
    buried = await opened(letter(await published()))
    assert buried is not None
    assert (buried.consumer, buried.reason) == (CONSUMER.durable, "why")


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_dead_letter_not_signed_by_its_consumers_service_is_ignored(forgery: str) -> None:
    assert await opened(FORGERIES[forgery](await published())) is None


async def test_a_dead_letter_in_the_name_of_another_consumer_is_ignored() -> None:
    wrong = build_dead_letter(
        catalog.GATEWAY_ON_RUN_FINISHED, all_services_identity(), await published(), "why", 3
    )
    assert await opened(wrong) is None


@pytest.mark.parametrize("stored", ["PML_ANALYZER_EVT/7", "PML_NOWHERE/1"])
async def test_a_message_that_the_server_gave_up_and_no_longer_stores_is_ignored(
    stored: str,
) -> None:
    stream, _, sequence = stored.partition("/")
    told = {
        "stream": stream,
        "consumer": CONSUMER.durable,
        "stream_seq": int(sequence),
        "deliveries": 2,
    }
    subject = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{stream}.{CONSUMER.durable}"
    assert await opened(Envelope(subject, json.dumps(told).encode(), {})) is None
