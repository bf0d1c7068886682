"""Queries are accepted only from their clients, once and while they are new; replies only from the
owner, to the query that was sent."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_common.tests.support.proofs import now, query_of, reply_of
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.errors import QueryFailed
from pml_common.bus.identity import (
    Identity,
    WrongSender,
    all_services_identity,
    all_services_keys,
)
from pml_common.bus.query_macs import AGE_S, ERROR_CODE, MAC
from pml_common.contracts import catalog
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.signing import SigningKey, TrustedKeys
from pml_common.testing.memory_bus import MemoryBus

SCOPE = Scope(org="acme", project="webapp")
QUESTION = ListTools(scope=SCOPE)
OTHER_QUESTION = ListTools(scope=SCOPE, server="git")
TOOLS = ToolCatalog(tools=(ToolDefinition(server="fs", name="read", description=""),))
QUERY = catalog.LIST_TOOLS


class Owner:
    """A registry that counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ListTools] = []

    async def __call__(self, question: ListTools) -> ToolCatalog:
        """Answer a query."""
        self.asked.append(question)
        return TOOLS


async def serving(harness: BusHarness) -> Owner:
    owner = Owner()
    await (await harness.connect("registry")).serve(QUERY, owner)
    return owner


def changed(envelope: Envelope, part: int, value: str) -> Envelope:
    """Replace a part of the MAC's header: key, time, nonce, MAC."""
    parts = envelope.headers[MAC].split(".")
    parts[part] = value
    return replace(envelope, headers={MAC: ".".join(parts)})


def by_a_stranger(service: str) -> Identity:
    return Identity([SigningKey.generate(service)], all_services_identity().trusted)


def by(service: str) -> Identity:
    keys = [key for key in all_services_keys() if key.service == service]
    return Identity(keys, all_services_identity().trusted)


asked = partial(query_of, QUERY, QUESTION)


def of_another_subject(reply: str) -> Envelope:
    other = replace(QUERY, name="list-servers")
    return replace(query_of(other, QUESTION, reply=reply), subject=asked(reply=reply).subject)


def of_another_client(reply: str) -> Envelope:
    """The executor proves what it may not ask."""
    other = replace(QUERY, clients=("executor",))
    return query_of(other, QUESTION, reply=reply, identity=by("executor"))


MAC_FAULT = "its MAC is not the analyzer's for what was received"
FORGERIES: dict[str, tuple[Callable[[str], Envelope], str]] = {
    "unproven": (
        lambda to: replace(asked(reply=to), headers={}),
        "it has no MAC; the analyzer or the g",
    ),
    "garbage": (lambda to: replace(asked(reply=to), headers={MAC: "é"}), "its key "),
    "garbage for a MAC": (lambda to: changed(asked(reply=to), 3, "é"), MAC_FAULT),
    "no MAC after its time": (
        lambda to: replace(
            asked(reply=to), headers={MAC: asked(reply=to).headers[MAC].rpartition(".")[0]}
        ),
        MAC_FAULT,
    ),
    "another body": (
        lambda to: replace(asked(reply=to), data=codec.encode(OTHER_QUESTION)),
        MAC_FAULT,
    ),
    "another time": (lambda to: changed(asked(reply=to), 1, "1"), MAC_FAULT),
    "another nonce": (lambda to: changed(asked(reply=to), 2, "0" * 24), MAC_FAULT),
    "another MAC": (lambda to: changed(asked(reply=to), 3, "0" * 64), MAC_FAULT),
    "another subject": (of_another_subject, MAC_FAULT),
    "another reply subject": (lambda to: replace(asked(reply="_INBOX.other"), reply=to), MAC_FAULT),
    "another client": (of_another_client, "is not the analyzer or the gateway's"),
    "a stranger": (
        lambda to: asked(reply=to, identity=by_a_stranger("gateway")),
        "is not the analyzer or the gateway's",
    ),
    "old": (
        lambda to: asked(reply=to, sent=now() - timedelta(seconds=AGE_S + 1)),
        "s ago by the NATS server's clock",
    ),
    "early": (
        lambda to: asked(reply=to, sent=now() + timedelta(seconds=AGE_S + 30)),
        "s ahead by the NATS server's clock",
    ),
    "before the replica": (
        lambda to: asked(reply=to, sent=now() - timedelta(seconds=AGE_S / 2)),
        "it is older than what this replica remembers",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_query_that_no_client_has_sent_now_reaches_no_handler(
    querying: BusHarness, forgery: str
) -> None:
    owner = await serving(querying)
    forge, why = FORGERIES[forgery]
    reply = await querying.ask_raw(forge(querying.reply_subject()))
    assert reply.headers[ERROR_CODE] == "invalid"
    assert reply.data.decode().startswith("not believed: ")
    assert why in reply.data.decode()
    assert MAC not in reply.headers, "its client must not take it for the reply to its own query"
    assert owner.asked == []


@pytest.mark.parametrize("client", ["analyzer", "gateway"])
async def test_each_client_of_a_query_may_send_it(querying: BusHarness, client: str) -> None:
    owner = await serving(querying)
    reply = await querying.ask_raw(asked(reply=querying.reply_subject(), identity=by(client)))
    assert codec.decode(ToolCatalog, reply.data) == TOOLS
    assert owner.asked == [QUESTION]


async def test_a_query_on_the_subject_of_another_scope_reaches_no_handler(
    querying: BusHarness,
) -> None:
    scoped, owner = replace(QUERY, scoped=True), Owner()
    await (await querying.connect("registry")).serve(scoped, owner)
    elsewhere = names.query_subject(scoped, Scope(org="acme", project="mobile"))
    query = query_of(scoped, QUESTION, reply=querying.reply_subject(), subject=elsewhere)
    told = (await querying.ask_raw(query)).data.decode()
    assert told == f"not believed: a query of acme.webapp on {elsewhere}"
    assert owner.asked == []


async def test_a_replayed_query_is_refused(querying: BusHarness) -> None:
    owner = await serving(querying)
    query = asked(reply=querying.reply_subject())
    assert ERROR_CODE not in (await querying.ask_raw(query)).headers
    again = await querying.ask_raw(query)
    assert again.data == b"not believed: it was received before"
    assert owner.asked == [QUESTION]


def by_another(query: Envelope) -> Envelope:
    """Build a reply of the gateway in place of the registry's."""
    impostor = replace(QUERY, owner="gateway")
    return reply_of(impostor, query_of(impostor, QUESTION), TOOLS)


def failed(query: Envelope) -> Envelope:
    """Build the owner's reply that it has failed."""
    return reply_of(QUERY, query, Envelope("", b"no such scope", {ERROR_CODE: "not_found"}))


def read_elsewhere(query: Envelope) -> Envelope:
    """Keep the digest of what the owner said, and say something else."""
    said = failed(query)
    digest = {codec.PAYLOAD: codec.digest(said.data)}
    return Envelope("", b"forged", {**said.headers, **digest})


REPLIES: dict[str, Callable[[Envelope], Envelope]] = {
    "unproven": lambda query: Envelope("", codec.encode(TOOLS), {}),
    "another body": lambda query: replace(
        reply_of(QUERY, query, TOOLS), data=codec.encode(ToolCatalog(tools=()))
    ),
    "another's key": by_another,
    "to another query": lambda query: reply_of(QUERY, asked(reply=""), TOOLS),
    "an unproven error": lambda query: Envelope("", b"forged", {ERROR_CODE: "not_found"}),
    "an error with another text": lambda query: replace(failed(query), data=b"forged"),
    "an error with a text elsewhere": read_elsewhere,
    "an error with another code": lambda query: replace(
        failed(query), headers={**failed(query).headers, ERROR_CODE: "conflict"}
    ),
    "a reply turned into an error": lambda query: Envelope(
        "", codec.encode(TOOLS), {**reply_of(QUERY, query, TOOLS).headers, ERROR_CODE: "conflict"}
    ),
}


@pytest.mark.parametrize("forgery", REPLIES)
async def test_a_reply_that_the_owner_has_not_sent_to_this_query_is_not_believed(
    querying: BusHarness, forgery: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Over NATS the owner's may follow, so that the client waits on."""
    gateway = await querying.connect("gateway")
    await querying.answer_raw(QUERY, REPLIES[forgery])
    asking = asyncio.create_task(gateway.request(QUERY, QUESTION, timeout=PATIENCE_S))
    await eventually(lambda: "list-tools: a reply was not believed: it" in caplog.text)
    asking.cancel()
    (outcome,) = await asyncio.gather(asking, return_exceptions=True)
    if isinstance(outcome, asyncio.CancelledError):
        return
    assert isinstance(outcome, QueryFailed)
    assert "a reply was not believed: it" in outcome.message
    assert outcome.code == "unavailable", "it is not known what the owner did"


async def test_a_success_does_not_become_an_error_by_a_header(querying: BusHarness) -> None:
    gateway = await querying.connect("gateway")

    def with_empty_code(query: Envelope) -> Envelope:
        reply = reply_of(QUERY, query, TOOLS)
        return replace(reply, headers={**reply.headers, ERROR_CODE: ""})

    await querying.answer_raw(QUERY, with_empty_code)
    assert await gateway.request(QUERY, QUESTION) == TOOLS


async def test_the_owners_error_is_believed(querying: BusHarness) -> None:
    gateway = await querying.connect("gateway")
    await querying.answer_raw(QUERY, failed)
    with pytest.raises(QueryFailed, match="no such scope") as refused:
        await gateway.request(QUERY, QUESTION)
    assert refused.value.code == "not_found"


def _generated(*services: str) -> list[SigningKey]:
    return [SigningKey.generate(service) for service in services]


async def test_a_key_that_is_being_replaced_and_its_successor_are_both_accepted() -> None:
    """Neither end knows which of the other's keys a replica has."""
    old, new = _generated("gateway", "registry"), _generated("gateway", "registry")
    trusted = TrustedKeys(key.public for key in [*old, *new])
    clients = [MemoryBus(identity=Identity([old[0]], trusted))]
    clients.append(MemoryBus(clients[0].broker, Identity([new[0]], trusted)))
    for key in (old[1], new[1]):
        owner = MemoryBus(clients[0].broker, Identity([key], trusted))
        await owner.serve(QUERY, Owner())
    for client in clients:
        for _ in range(2):  # the replicas in turn
            assert await client.request(QUERY, QUESTION) == TOOLS


async def test_a_service_that_is_no_client_cannot_send_a_query() -> None:
    with pytest.raises(WrongSender, match="only the analyzer and gateway may; we are learner"):
        await MemoryBus(identity=by("learner")).request(QUERY, QUESTION)


async def test_a_service_that_is_not_the_owner_answers_nothing() -> None:
    impostor = MemoryBus(identity=by("learner"))
    await impostor.serve(QUERY, Owner())
    with pytest.raises(QueryFailed, match="not believed: it has no MAC") as refused:
        await MemoryBus(impostor.broker).request(QUERY, QUESTION)
    assert refused.value.code == "unavailable"
