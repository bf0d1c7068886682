"""Behaviour of a real server: its configuration, and the view of standard tools."""

import asyncio
import json
from dataclasses import replace
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import APIError

from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_common.tests.support.proofs import query_of
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import connection
from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

pytestmark = pytest.mark.integration

SCOPE = Scope(org="acme", project="webapp")


def tools_listed() -> ToolsListed:
    return ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=())


async def no_tools(question: ListTools) -> ToolCatalog:
    return ToolCatalog(tools=())


async def test_a_start_changes_nothing_on_the_server(nats_url: str, client: Client) -> None:
    changes: list[str] = []

    async def note(message: Msg) -> None:
        changes.append(message.subject)

    for change in ("STREAM.UPDATED.>", "*.CREATED.>"):
        await connection.subscribe(client, f"$JS.EVENT.ADVISORY.{change}", note)
    await connection.flush(client)
    started = await NatsBus.connect(nats_url, service="gateway", identity=all_services_identity())
    await started.drain()
    await connection.flush(client)
    assert changes == []


async def test_services_are_found_by_the_standard_tools(bus: NatsBus, client: Client) -> None:
    await bus.serve(catalog.LIST_TOOLS, no_tools)
    reply = await client.request("$SRV.INFO.pml-registry", timeout=PATIENCE_S)
    info = json.loads(reply.data)
    assert info["metadata"] == {"instance": "r1"}
    assert [endpoint["subject"] for endpoint in info["endpoints"]] == [
        "pml.qry.registry.list-tools.v1"
    ]


async def test_an_error_is_readable_by_the_standard_tools(bus: NatsBus, client: Client) -> None:
    async def refuse(question: ListTools) -> ToolCatalog:
        raise QueryFailed("not_found", "no\nsuch server")

    await bus.serve(catalog.LIST_TOOLS, refuse)
    asked = query_of(catalog.LIST_TOOLS, ListTools(scope=SCOPE), reply="_INBOX.tool")
    replies = asyncio.Queue[Msg]()
    await connection.subscribe(client, asked.reply, replies.put)
    await client.publish(asked.subject, asked.data, asked.reply, headers=dict(asked.headers))
    reply = await asyncio.wait_for(replies.get(), PATIENCE_S)
    assert reply.headers is not None
    assert reply.headers["Nats-Service-Error-Code"] == "404"
    assert reply.headers["Nats-Service-Error"] == "no such server"


async def test_no_more_than_max_in_flight_is_handled_at_a_time(bus: NatsBus) -> None:
    consumer = replace(catalog.REGISTRY_ON_TOOLS_LISTED, max_in_flight=3)
    running = most = 0
    recorder = RecordingHandler()

    async def handle(message: ToolsListed) -> list[ToolsListed]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        await recorder(message)
        return []

    await bus.consume(consumer, handle)
    await asyncio.gather(*(bus.publish(tools_listed()) for _ in range(200)))
    await recorder.has_seen(200)
    assert most <= 3


async def test_a_large_body_stored_twice_takes_its_space_once(bus: NatsBus, client: Client) -> None:
    js = JetStreamContext(client)
    sizes: list[int] = []
    big = ToolDefinition(server="fs", name="read", description="d" * 300_000)
    message = tools_listed().model_copy(update={"tools": (big,)})
    for _ in range(2):
        await bus.publish(message)
        sizes.append((await js.stream_info("PML_BODIES")).state.bytes)
    assert sizes[0] > 300_000
    assert sizes[0] == sizes[1]


async def test_an_address_without_a_server_fails_within_the_time() -> None:
    with pytest.raises(BusUnavailable, match=r"no NATS at 127\.0\.0\.1:9 within 0\.2 s"):
        await NatsBus.connect(
            "nats://secret@127.0.0.1:9",
            service="registry",
            identity=all_services_identity(),
            patience_s=0.2,
        )


@pytest.mark.parametrize("code", [10009, 10158])  # not the leader; that id is being stored
async def test_transient_errors_of_a_cluster_are_retryable(client: Client, code: int) -> None:
    said = APIError(code=500, err_code=code, description="not now")
    with pytest.raises(BusUnavailable), connection.server_errors(client, "publish"):
        raise said


async def test_a_forged_reply_does_not_keep_the_owners_from_being_received(
    nats_url: str, bus: NatsBus, client: Client
) -> None:
    forged = asyncio.Event()

    async def forge(asked: Msg) -> None:
        await client.publish(asked.reply, b'{"tools": []}')
        await connection.flush(client)
        forged.set()

    async def answer(question: ListTools) -> ToolCatalog:
        await forged.wait()
        return ToolCatalog(tools=(ToolDefinition(server="fs", name="read", description=""),))

    await connection.subscribe(client, "pml.qry.registry.list-tools.v1", forge)
    await bus.serve(catalog.LIST_TOOLS, answer)
    reply = await bus.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE), timeout=PATIENCE_S)
    assert len(reply.tools) == 1
