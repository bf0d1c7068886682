"""Messages are accepted for their sender's signature, not because they arrived."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from libs.pml_common.tests.support.builders import after, example, run_finished
from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.errors import Rejected
from pml_common.bus.identity import (
    SIGNATURE,
    Identity,
    WrongSender,
    all_services_identity,
    signed_content,
)
from pml_common.bus.port import DeadMessage
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.signing import SigningKey, TrustedKeys
from pml_common.testing.memory_bus import MemoryBus

SCOPE = Scope(org="acme", project="webapp")
SUBJECT = "pml.evt.gateway.tools-listed.v1.acme.webapp.fs"

Change = Callable[[Envelope], Envelope]


def tools_listed() -> ToolsListed:
    return ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=())


def entry(workflow: UUID) -> TraceRecorded:
    return TraceRecorded(
        event_id=uuid4(), scope=SCOPE, workflow_id=workflow, entries=(), previous=0
    )


def stated(message: ToolsListed, sender: str = "gateway") -> Envelope:
    """Build a message signed by `sender`."""
    data, message_id = codec.encode(message), str(message.event_id)
    content = signed_content(SUBJECT, message_id, hashlib.sha256(data).hexdigest())
    headers = {codec.MSG_ID: message_id, SIGNATURE: all_services_identity().sign(sender, content)}
    return Envelope(SUBJECT, data, headers)


def with_header(envelope: Envelope, name: str, value: str) -> Envelope:
    return replace(envelope, headers={**envelope.headers, name: value})


def by_a_stranger(envelope: Envelope) -> Envelope:
    stranger = Identity([SigningKey.generate("gateway")], TrustedKeys())
    content = signed_content(SUBJECT, envelope.headers[codec.MSG_ID], "0" * 64)
    return with_header(envelope, SIGNATURE, stranger.sign("gateway", content))


FORGERIES: dict[str, Change] = {
    "no signature": lambda it: with_header(it, SIGNATURE, " "),
    "no key": lambda it: with_header(it, SIGNATURE, it.headers[SIGNATURE].partition(".")[2]),
    "another body": lambda it: replace(it, data=it.data.replace(b"fs", b"xx")),
    "another id": lambda it: with_header(it, codec.MSG_ID, "another"),
    "another scope": lambda it: replace(it, subject=it.subject.replace("acme", "evil")),
    "another service's signature": lambda it: stated(tools_listed(), "executor"),
    "a stranger's signature": by_a_stranger,
    "a body kept elsewhere": lambda it: with_header(replace(it, data=b""), codec.PAYLOAD, "0" * 64),
}


def test_a_message_signed_by_its_sender_is_accepted() -> None:
    codec.require_authentic(catalog.TOOLS_LISTED, stated(tools_listed()), all_services_identity())


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forged_message_is_dead_lettered_and_reaches_no_handler(
    harness: BusHarness, forgery: str
) -> None:
    bus, recorder = await harness.connect("registry"), RecordingHandler()
    await bus.consume(catalog.REGISTRY_ON_TOOLS_LISTED, recorder)
    forged = FORGERIES[forgery](stated(tools_listed()))
    await harness.inject(forged)
    message = tools_listed()
    await bus.publish(message)
    await recorder.has_seen(1)
    assert recorder.seen == [message.event_id]
    [letter] = await harness.dead_letters()
    assert letter.reason.startswith("not believed: its signature")
    assert letter.subject == forged.subject


async def test_an_end_without_the_fence_of_its_journal_is_not_handled_and_ends_nothing(
    harness: BusHarness,
) -> None:
    """Its dead letter is ignored; that of the fenced end, which follows, is not."""
    bus, recorder = await harness.connect("gateway"), RecordingHandler(Rejected("a fenced end"))
    await bus.consume(catalog.GATEWAY_ON_RUN_FINISHED, recorder)
    heard = asyncio.Queue[str]()

    async def hear(dead: DeadMessage) -> Sequence[Message]:
        heard.put_nowait(dead.reason)
        return ()

    await bus.consume_dead_letters(catalog.GATEWAY_ON_DEAD_LETTER, hear)
    executor, workflow = await harness.connect("executor"), uuid4()
    unfenced, fenced = (run_finished(SCOPE, workflow) for _ in range(2))
    last = await executor.publish(unfenced)
    await executor.publish(after(last, fenced))
    async with asyncio.timeout(PATIENCE_S):
        assert await heard.get() == "a fenced end"
    assert recorder.seen == [fenced.event_id]
    assert "without the fence" in (await harness.dead_letters())[0].reason


async def test_a_forged_message_reaches_no_listener(harness: BusHarness) -> None:
    bus, heard = await harness.connect("gateway"), asyncio.Queue[ToolsListed]()
    await bus.listen(catalog.TOOLS_LISTED, heard.put)
    await harness.inject(FORGERIES["another body"](stated(tools_listed())))
    message = tools_listed()
    await bus.publish(message)
    async with asyncio.timeout(PATIENCE_S):
        assert await heard.get() == message


async def test_a_forged_message_is_no_part_of_a_history(harness: BusHarness) -> None:
    bus = await harness.connect("gateway")
    told = [tools_listed(), tools_listed()]
    await bus.publish(told[0])
    await harness.inject(FORGERIES["another body"](stated(tools_listed())))
    await bus.publish(told[1])
    for of in (catalog.TOOLS_LISTED, None):
        assert [each.message for each in await bus.history(SCOPE, "fs", of=of)] == told


async def test_messages_that_decide_nothing_need_no_signature(
    harness: BusHarness,
) -> None:
    bus, workflow = await harness.connect("gateway"), uuid4()
    finished = example(catalog.WORKFLOW_FINISHED).model_copy(update={"workflow_id": workflow})
    data = codec.encode(finished)
    subject = names.subject_of(catalog.WORKFLOW_FINISHED, finished.scope, str(workflow))
    await harness.inject(Envelope(subject, data, {codec.MSG_ID: "unsigned", SIGNATURE: "none"}))
    stored = await bus.history(finished.scope, str(workflow), of=catalog.WORKFLOW_FINISHED)
    assert [each.message for each in stored] == [finished]
    unsigned = {each.name for each in catalog.MESSAGES if not each.signed}
    assert unsigned == {
        "workflow-finished",
        "learning-updated",
        "edges-observed",
        "uses-observed",
        "use-judged",
        "capability-changed",
        "graph-changed",
    }


async def test_a_replaced_payload_is_rejected() -> None:
    bus, recorder = MemoryBus(), RecordingHandler()
    tool = ToolDefinition(server="fs", name="t", description="x" * codec.INLINE_LIMIT)
    big = tools_listed().model_copy(update={"tools": (tool,)})
    await bus.publish(big)
    for key in bus.broker.payloads:
        bus.broker.payloads[key] = codec.encode(tools_listed())
    await bus.consume(catalog.REGISTRY_ON_TOOLS_LISTED, recorder)
    await bus.broker.settled()
    assert recorder.seen == []
    assert "is no longer in PML_BODIES" in bus.broker.dead[0].reason


async def test_a_service_publishes_only_its_own_messages() -> None:
    key = SigningKey.generate("learner")
    learner = MemoryBus(identity=Identity([key], TrustedKeys([key.public])))
    with pytest.raises(WrongSender, match="only the gateway may publish this; we are learner"):
        await learner.publish(tools_listed())
    assert not learner.broker.streams


async def test_a_replica_that_trusts_the_new_key_reads_what_it_signs() -> None:
    old, new = SigningKey.generate("gateway"), SigningKey.generate("gateway")
    trusted = TrustedKeys([old.public, new.public])
    sender = MemoryBus(identity=Identity([old], trusted))
    successor = MemoryBus(sender.broker, Identity([new], trusted))
    reader, late = (MemoryBus(sender.broker, Identity([], keys)) for keys in (trusted, trusted))
    recorder = RecordingHandler()
    await reader.consume(catalog.REGISTRY_ON_TOOLS_LISTED, recorder)
    for bus in (sender, successor):
        await bus.publish(tools_listed())
    await recorder.has_seen(2)
    assert len(await late.history(SCOPE, "fs", of=catalog.TOOLS_LISTED)) == 2


def test_the_signature_cache_is_bounded_and_bound_to_its_content() -> None:
    key = SigningKey.generate("gateway")
    identity = Identity([key], TrustedKeys([key.public]))
    signed = [identity.sign("gateway", b"%d" % number) for number in range(600)]
    assert identity.fault("gateway", b"599", signed[599]) is None
    assert identity.fault("gateway", b"0", signed[0]) is None  # evicted, verified again
    assert identity.fault("gateway", b"1", signed[599]) is not None
    assert identity.fault("learner", b"599", signed[599]) is not None
    assert identity.fault("gateway", b"599", None) is not None
