"""Forged messages that the NATS server itself refuses, by the service that would send them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.nats_accounts import NatsAccount
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.connection import flush, subscribe
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.catalog import SERVICES
from pml_common.contracts.client_sessions import ClientMessage
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

pytestmark = pytest.mark.integration

SCOPE = Scope(org="acme", project="webapp")


@pytest.fixture
async def operator(nats_account: NatsAccount) -> AsyncIterator[Client]:
    """A client with all permissions, on an account with all streams."""
    client = Client()
    await client.connect(nats_account.url)
    yield client
    await client.close()


class Intruder:
    """A client with one service's credentials, and the server's refusals."""

    def __init__(self) -> None:
        self.client = Client()
        self.refused: list[str] = []

    async def note(self, error: Exception) -> None:
        """Record the server's error."""
        self.refused.append(str(error).lower())

    async def wait_until_refused(self, kind: str, subject: str) -> None:
        """Wait until the server has refused a subject."""
        said = f'permissions violation for {kind} to "{subject}"'.lower()
        await eventually(lambda: any(said in each for each in self.refused))


@asynccontextmanager
async def connected_as(account: NatsAccount, service: str) -> AsyncGenerator[Intruder]:
    """Connect with the credentials of a service."""
    intruder = Intruder()
    await intruder.client.connect(
        account.url_of(service), error_cb=intruder.note, inbox_prefix=f"_INBOX.{service}"
    )
    try:
        yield intruder
    finally:
        await intruder.client.close()


FORGED = [
    ("executor", "pml.evt.analyzer.execution-analyzed.v1.acme.webapp.w"),
    ("learner", "pml.evt.executor.run-finished.v2.acme.webapp.w"),
    ("analyzer", "pml.evt.executor.trace-recorded.v1.acme.webapp.w"),
    ("executor", "pml.cmd.executor.run-workflow.v1.acme.webapp.w"),
    ("registry", "pml.evt.gateway.tools-listed.v1.acme.webapp.fs"),
    ("analyzer", "pml.qry.gateway.call-tool.v3.acme.webapp"),
    ("learner", "pml.dead.gateway-on-run-finished"),
    ("executor", "_INBOX.gateway.guessed.7"),
    ("analyzer", "$JS.API.STREAM.DELETE.PML_EXECUTOR_EVT"),
    ("executor", "$JS.API.STREAM.PURGE.PML_EXECUTOR_EVT"),
    ("executor", "$JS.API.STREAM.MSG.DELETE.PML_EXECUTOR_EVT"),
    ("analyzer", "$JS.API.STREAM.UPDATE.PML_EXECUTOR_EVT"),
    ("executor", "$JS.API.STREAM.UPDATE.PML_EXECUTOR_EVT"),
    ("executor", "$JS.API.STREAM.CREATE.PML_EXECUTOR_EVT"),
    ("executor", "$JS.API.CONSUMER.CREATE.PML_EXECUTOR_CMD.executor-on-run-workflow.>"),
    ("registry", "$JS.API.CONSUMER.DELETE.PML_EXECUTOR_EVT.gateway-on-run-finished"),
    ("learner", "$JS.API.CONSUMER.MSG.NEXT.PML_EXECUTOR_CMD.executor-on-run-workflow"),
    ("learner", "$JS.API.CONSUMER.CREATE.PML_GATEWAY_EVT.spy"),
    ("analyzer", "$JS.API.DIRECT.GET.PML_EXECUTOR_EVT"),
    ("executor", "$JS.ACK.PML_EXECUTOR_EVT.gateway-on-run-finished.1.1.1.1.0"),
    ("learner", "$KV.PML_MEMOS.result.acme.webapp.x"),
    ("executor", "pml.sig.gateway.client-message.v1.acme.webapp.s"),
]


@pytest.mark.parametrize(("service", "subject"), FORGED)
async def test_what_a_service_has_no_business_with_is_refused(
    nats_account: NatsAccount, operator: Client, service: str, subject: str
) -> None:
    arrived: list[Msg] = []

    async def note(message: Msg) -> None:
        arrived.append(message)

    await subscribe(operator, subject, note)
    await flush(operator)
    async with connected_as(nats_account, service) as intruder:
        await intruder.client.publish(subject, b"{}")
        await intruder.wait_until_refused("publish", subject)
    await flush(operator)
    assert arrived == []


SPYING = [
    ("registry", "_INBOX.gateway.>"),
    ("learner", "_INBOX.>"),
    ("analyzer", "pml.cmd.>"),
    ("executor", "pml.evt.>"),
    ("registry", "pml.sig.gateway.client-message.v1.>"),
    ("learner", "pml.qry.registry.list-tools.v1"),
    ("executor", "pml.qry.gateway.call-tool.v3.acme.webapp"),
    ("analyzer", ">"),
]


@pytest.mark.parametrize(("service", "subject"), SPYING)
async def test_what_is_meant_for_another_is_not_read(
    nats_account: NatsAccount, operator: Client, service: str, subject: str
) -> None:
    async def read(message: Msg) -> None:
        raise AssertionError(message.subject)

    async with connected_as(nats_account, service) as intruder:
        await subscribe(intruder.client, subject, read)
        await intruder.wait_until_refused("subscription", subject)


async def test_a_reply_is_allowed_once_and_only_to_a_question(nats_account: NatsAccount) -> None:
    questions: list[Msg] = []

    async def answer(message: Msg) -> None:
        questions.append(message)
        await message.respond(b"first")

    async with (
        connected_as(nats_account, "registry") as registry,
        connected_as(nats_account, "gateway") as gateway,
    ):
        subject = "pml.qry.registry.list-tools.v1"
        await subscribe(registry.client, subject, answer)
        await flush(registry.client)
        assert (await gateway.client.request(subject, b"", timeout=PATIENCE_S)).data == b"first"
        await questions[0].respond(b"second")
        await registry.wait_until_refused("publish", questions[0].reply)


async def test_services_that_may_do_only_this_do_their_work(nats_account: NatsAccount) -> None:
    heard: asyncio.Queue[ToolsListed] = asyncio.Queue()
    buses = {
        service: await NatsBus.connect(
            nats_account.url_of(service), service=service, identity=all_services_identity()
        )
        for service in reversed(SERVICES)
    }
    gateway, registry = buses["gateway"], buses["registry"]
    big = ToolDefinition(server="fs", name="read", description="x" * 400_000)
    message = ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=(big,))

    async def handle(listed: ToolsListed) -> list[ToolsListed]:
        await heard.put(listed)
        return []

    async def tools(question: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=(big,))

    await registry.consume(catalog.REGISTRY_ON_TOOLS_LISTED, handle)
    await registry.serve(catalog.LIST_TOOLS, tools)
    async with gateway.follow(SCOPE, "fs") as events, asyncio.timeout(PATIENCE_S):
        await gateway.publish(message)
        assert await anext(events) == message
        assert await heard.get() == message
    for query_client in (gateway, buses["analyzer"]):
        answer = await query_client.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE))
        assert answer == ToolCatalog(tools=(big,))
    assert [each.message for each in await gateway.history(SCOPE, "fs")] == [message]
    await gateway.put("a.b", b"c", 60)
    assert await gateway.get("a.b") == b"c"
    assert await gateway.count("a") == 1
    await gateway.delete("a.b")
    said: asyncio.Queue[ClientMessage] = asyncio.Queue()
    await gateway.listen(catalog.CLIENT_MESSAGE, said.put)
    signal = ClientMessage(scope=SCOPE, signal_id=uuid4(), session="s", message={"id": 1})
    await gateway.publish(signal)
    async with asyncio.timeout(PATIENCE_S):
        assert await said.get() == signal
    for bus in buses.values():
        assert await bus.healthy()
        assert await bus.refusal() is None
        await bus.drain(1)
