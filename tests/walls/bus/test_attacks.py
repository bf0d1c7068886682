"""Attacks with the NATS password of one service: refused by the server, or detected and named."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

from libs.pml_common.tests.support.builders import example
from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.nats_accounts import NatsAccount
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec, journal, names, payloads, streams
from pml_common.bus.dead_letters import read_dead_letters
from pml_common.bus.errors import BusError, Rejected
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.payloads import NatsPayloads
from pml_common.contracts import catalog
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from tests.walls.bus.intruder import Intruder, connected_as

pytestmark = pytest.mark.integration

SCOPE = Scope(org="acme", project="webapp")
JOURNALS = "PML_EXECUTOR_EVT"
GET_BODY = f"$JS.API.DIRECT.GET.{names.PAYLOAD_STREAM}"
QUERY = names.query_subject(catalog.LIST_TOOLS)
no_headers = pytest.mark.parametrize("no_headers", [True, False])


class Walled:
    """The services' buses on one account, each with its own password."""

    def __init__(self, account: NatsAccount, stack: AsyncExitStack) -> None:
        self.account = account
        self._stack = stack

    async def bus(self, service: str) -> NatsBus:
        """Connect a service."""
        bus = await NatsBus.connect(
            self.account.url_of(service), service=service, identity=all_services_identity()
        )
        self._stack.push_async_callback(bus.drain, 1.0)
        return bus

    async def intruder(self, service: str) -> Intruder:
        """Connect with a service's password."""
        return await self._stack.enter_async_context(connected_as(self.account, service))


@pytest.fixture
async def walled(nats_account: NatsAccount) -> AsyncIterator[Walled]:
    async with AsyncExitStack() as stack:
        yield Walled(nats_account, stack)


async def stored(intruder: Intruder, service: str, data: bytes) -> bytes:
    """Store a body as a service, and return the direct get of it."""
    digest = hashlib.sha256(data).hexdigest()
    subject = names.body_subject(service, digest, "0", "0")
    assert b'"error"' not in await intruder.request(subject, data)
    return json.dumps({"last_by_subj": subject}).encode()


def without_headers(get: bytes, no_headers: bool) -> bytes:
    return json.dumps({**json.loads(get), "no_hdr": no_headers}).encode()


TAPS = {
    "republish": {"republish": {"src": "pml.evt.executor.>", "dest": "$KV.PML_MEMOS.>"}},
    "source": {"sources": [{"name": "PML_GATEWAY_EVT"}]},
    "no_ack": {"no_ack": True},
}


@pytest.mark.parametrize("tap", TAPS)
async def test_no_service_changes_its_own_stream(walled: Walled, tap: str) -> None:
    wanted = next(
        each for each in streams.stream_configs(streams.DEFAULTS) if each["name"] == JOURNALS
    )
    intruder = await walled.intruder("executor")
    update = json.dumps({**wanted, **TAPS[tap]}).encode()
    await intruder.is_refused(f"$JS.API.STREAM.UPDATE.{JOURNALS}", update)
    executor = await walled.bus("executor")  # which checks its streams
    assert await executor.shortfall() is None


async def test_no_service_purges_a_journal(walled: Walled) -> None:
    executor = await walled.bus("executor")
    entry = example(catalog.TRACE_RECORDED).model_copy(update={"previous": 0})
    await executor.publish(entry)
    for service in ("executor", "gateway"):
        intruder = await walled.intruder(service)
        await intruder.is_refused(f"$JS.API.STREAM.PURGE.{JOURNALS}", b"")
    subject = names.subject_of(catalog.TRACE_RECORDED, entry.scope, entry.entity)
    answer = await (await walled.intruder("executor")).request(
        subject, b"", **{"Nats-Rollup": "all"}
    )
    assert b"rollup not permitted" in answer
    assert len(await executor.history(entry.scope, entry.entity, of="executor")) == 1


@no_headers
async def test_a_stored_body_is_no_query(
    walled: Walled, caplog: pytest.LogCaptureFixture, no_headers: bool
) -> None:
    registry, asked = await walled.bus("registry"), list[ListTools]()

    async def answer(query: ListTools) -> ToolCatalog:
        asked.append(query)
        return ToolCatalog(tools=())

    await registry.serve(catalog.LIST_TOOLS, answer)
    forged = ListTools(scope=Scope(org="other", project="x"))
    intruder = await walled.intruder("learner")  # which may not ask this
    get = await stored(intruder, "learner", codec.encode(forged))
    await intruder.have_delivered(GET_BODY, without_headers(get, no_headers), QUERY)
    await eventually(lambda: "list-tools: a message that nobody asked" in caplog.text)
    gateway = await walled.bus("gateway")
    await gateway.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE), timeout=PATIENCE_S)
    assert [each.scope for each in asked] == [SCOPE]


async def test_a_pulled_message_is_no_query(
    walled: Walled, caplog: pytest.LogCaptureFixture
) -> None:
    registry, asked = await walled.bus("registry"), asyncio.Event()

    async def answer(query: ListTools) -> ToolCatalog:
        asked.set()
        return ToolCatalog(tools=())

    await registry.serve(catalog.LIST_TOOLS, answer)
    await (await walled.bus("executor")).publish(
        example(catalog.RUN_FINISHED).model_copy(update={"previous": 0})
    )
    intruder = await walled.intruder("learner")
    pull = f"$JS.API.CONSUMER.MSG.NEXT.{JOURNALS}.{catalog.LEARNER_ON_RUN_FINISHED.durable}"
    await intruder.have_delivered(pull, b"", QUERY)
    await eventually(lambda: "list-tools: a message that nobody asked" in caplog.text)
    assert not asked.is_set()


@no_headers
async def test_a_stored_body_is_no_event(walled: Walled, no_headers: bool) -> None:
    registry = await walled.bus("registry")
    recorder = RecordingHandler()
    await registry.consume(catalog.REGISTRY_ON_EDGES_OBSERVED, recorder)
    forged = example(catalog.EDGES_OBSERVED)
    intruder = await walled.intruder("analyzer")
    get = await stored(intruder, "analyzer", codec.encode(forged))
    subject = names.subject_of(catalog.EDGES_OBSERVED, forged.scope, forged.entity)
    await intruder.have_delivered(GET_BODY, without_headers(get, no_headers), subject)
    [letter] = await eventually(lambda: letters_of(walled.account))
    assert "an answer of the server, which somebody has directed here" in letter
    assert recorder.seen == []


async def test_a_pulled_message_is_no_event(walled: Walled) -> None:
    """The server stores it in the other stream, but under the subject that it had."""
    registry, learner = await walled.bus("registry"), await walled.bus("learner")
    recorder = RecordingHandler()
    await registry.consume(catalog.REGISTRY_ON_EDGES_OBSERVED, recorder)
    forged = example(catalog.EDGES_OBSERVED)
    intruder = await walled.intruder("gateway")
    own = names.subject_of(catalog.CALL_ENDED, forged.scope, forged.entity)
    await intruder.request(own, codec.encode(forged), **{codec.MSG_ID: "forged"})
    pull = f"$JS.API.CONSUMER.MSG.NEXT.PML_GATEWAY_EVT.{catalog.GATEWAY_ON_CALL_ENDED.durable}"
    subject = names.subject_of(catalog.EDGES_OBSERVED, forged.scope, forged.entity)
    await intruder.have_delivered(pull, b"", subject)
    stored = await eventually(lambda: subjects_in(walled.account, "PML_LEARNER_EVT"))
    assert list(stored) == [own]
    known = forged.model_copy(update={"event_id": uuid4()})
    await learner.publish(known)
    await recorder.has_seen(1)
    assert recorder.seen == [known.event_id]


async def subjects_in(account: NatsAccount, stream: str) -> dict[str, int]:
    """Return the subjects of what a stream holds, with how many messages each has, as the
    operator."""
    operator = Client()
    await operator.connect(account.url)
    try:
        info = await JetStreamContext(operator).stream_info(stream, subjects_filter=">")
        return info.state.subjects or {}
    finally:
        await operator.close()


async def letters_of(account: NatsAccount) -> list[str]:
    """Return the reasons of all dead letters, as the operator."""
    operator = Client()
    await operator.connect(account.url)
    try:
        return [each.reason for each in await read_dead_letters(operator)]
    finally:
        await operator.close()


async def test_a_cached_value_is_the_gateways_own(
    walled: Walled, caplog: pytest.LogCaptureFixture
) -> None:
    gateway, intruder = await walled.bus("gateway"), await walled.intruder("analyzer")
    await gateway.put("result.a", b"true", 60)
    get = await stored(intruder, "analyzer", b"forged")
    await intruder.have_delivered(GET_BODY, get, "$KV.PML_MEMOS.result.a")
    await eventually(lambda: _is_none(gateway, "result.a"))
    assert "the cached value of result.a is ignored" in caplog.text
    await gateway.put("result.a", b"true", 60)
    assert await gateway.get("result.a") == b"true"


async def _is_none(gateway: NatsBus, key: str) -> bool:
    return await gateway.get(key) is None


def bodies(intruder: Intruder, service: str) -> NatsPayloads:
    return NatsPayloads(intruder.client, JetStreamContext(intruder.client), service)


BODY = b"b" * 300_000
KEY = hashlib.sha256(BODY).hexdigest()


async def test_a_stored_body_is_never_replaced_or_rolled_up(walled: Walled) -> None:
    owner, intruder = await walled.intruder("gateway"), await walled.intruder("analyzer")
    kept = bodies(owner, "gateway")
    await kept.put(KEY, BODY)
    period = str(int(time.time() / streams.MESSAGE_AGE_S))
    get = await stored(intruder, "analyzer", b"forged")
    for part in ("0", "end"):
        subject = names.body_subject("gateway", KEY, period, part)
        await intruder.is_refused(subject, b"forged")
        await intruder.have_delivered(GET_BODY, get, subject)
    own = names.body_subject("analyzer", KEY, period, "0")
    assert b"rollup not permitted" in await intruder.request(own, b"x", **{"Nats-Rollup": "all"})
    assert b'"error"' not in await intruder.request(own, b"garbage under another's digest")
    assert await kept.get(KEY) == BODY
    assert await bodies(intruder, "analyzer").get(KEY) == BODY


async def test_more_than_a_body_may_take_is_refused_and_keeps_nobody_from_another(
    walled: Walled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payloads, "_MOST_READ", 2 * len(BODY))
    monkeypatch.setattr(payloads, "LAG_DELAYS_S", ())
    owner, intruder = await walled.intruder("gateway"), await walled.intruder("analyzer")
    monkeypatch.setattr(journal, "_BATCH_BYTES", len(BODY))
    for part in range(40):
        subject = names.body_subject("analyzer", KEY, "0", str(part))
        assert b'"error"' not in await intruder.request(subject, b"x" * 100_000)
    reader = bodies(await walled.intruder("learner"), "learner")
    with pytest.raises(
        Rejected, match=r"more than 600,000 bytes are stored on pml\.body\.analyzer"
    ):
        await codec.check_out(b"", {codec.PAYLOAD: KEY}, reader)
    await bodies(owner, "gateway").put(KEY, BODY)
    assert await codec.check_out(b"", {codec.PAYLOAD: KEY}, reader) == BODY


async def test_a_body_whose_place_was_taken_is_named(
    walled: Walled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payloads, "LAG_DELAYS_S", (0.0,))
    owner, intruder = await walled.intruder("gateway"), await walled.intruder("analyzer")
    period = str(int(time.time() / streams.MESSAGE_AGE_S))
    get = await stored(intruder, "analyzer", b"forged")
    subject = names.body_subject("gateway", KEY, period, "0")
    await intruder.have_delivered(GET_BODY, get, subject)
    with pytest.raises(BusError, match=r"cannot be stored: .* holds other data"):
        await bodies(owner, "gateway").put(KEY, BODY)
