"""Sessions of older clients whose requests come to different gateways."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import cycle

import httpx2
import pytest
from mcp import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult, ToolListChangedNotification
from typing_extensions import override

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.testing.memory_broker import MemoryBroker
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.ports import CallerSide
from services.gateway.tests.integration.mcp.legacy_client import (
    HOLD,
    Json,
    begin,
    call,
    in_session,
    open_get,
    open_post,
    post,
)
from services.gateway.tests.integration.mcp.served_endpoint import ServedEndpoint, served

pytestmark = pytest.mark.integration

ASK: Json = {
    "message": "Run it?",
    "requestedSchema": {"type": "object", "properties": {"yes": {"type": "boolean"}}},
}

Pair = tuple[ServedEndpoint, ServedEndpoint]


@pytest.fixture
async def pair() -> AsyncGenerator[Pair]:
    """Two replicas."""
    broker = MemoryBroker()
    async with served(broker=broker) as one, served(broker=broker) as other:
        for each in (one, other):
            each.agent.answers["execute"] = ExecuteResponse(status="success", result=1)
        yield one, other


class _InTurn(httpx2.AsyncHTTPTransport):
    """Sends each request to the next replica, as a load balancer does."""

    def __init__(self, replicas: Pair) -> None:
        super().__init__()
        self._urls = cycle(httpx2.URL(each.url) for each in replicas)
        self.served: list[httpx2.URL] = []

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = next(self._urls)
        request.headers["Host"] = request.url.netloc.decode()
        self.served.append(request.url)
        return await super().handle_async_request(request)


async def test_the_official_client_works_behind_a_load_balancer(pair: Pair) -> None:
    told: list[IncomingMessage] = []

    async def hear(message: IncomingMessage) -> None:
        told.append(message)

    async def accept(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"yes": True})

    def sides() -> list[CallerSide]:
        return [side for each in pair for side in each.agent.sides]

    transport = _InTurn(pair)
    async with (
        asyncio.timeout(PATIENCE_S),
        httpx2.AsyncClient(transport=transport, headers={"X-User": "ada"}) as http,
        Client(
            streamable_http_client("http://127.0.0.1/mcp", http_client=http),
            mode="legacy",
            message_handler=hear,
            elicitation_callback=accept,
        ) as client,
    ):
        for _ in range(3):
            before = sides()
            calling = asyncio.create_task(client.call_tool("pml_execute", HOLD))
            new = await eventually(lambda before=before: [s for s in sides() if s not in before])
            asked = new[0].client
            assert asked is not None
            answer = await asked.request("elicitation/create", ASK, PATIENCE_S)
            assert answer == {"action": "accept", "content": {"yes": True}}
            for each in pair:
                each.agent.hold.set()
            assert not (await calling).is_error
            for each in pair:
                each.agent.hold.clear()
        for each in pair:
            await each.endpoint.tools_changed()
        await eventually(lambda: any(isinstance(m, ToolListChangedNotification) for m in told))
    assert len(set(transport.served)) == 2


async def test_any_replica_serves_a_session(pair: Pair) -> None:
    one, other = pair
    one.agent.hold.set()
    other.agent.hold.set()
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(one.url, http, capabilities={"sampling": {}})
        for each in (other, one):
            assert (await post(each.url, http, session, call(1, HOLD))).status_code == 200
            (side,) = each.agent.sides
            assert side.client is not None
            assert side.client.capabilities == {"sampling": {}}


async def test_an_answer_reaches_the_replica_that_asked(pair: Pair) -> None:
    one, other = pair
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session, theirs = await begin(one.url, http), await begin(other.url, http, "eve")
        async with open_post(one.url, http, session, call(1, HOLD)) as stream:
            await eventually(lambda: one.agent.sides)
            client = one.agent.sides[0].client
            assert client is not None
            asking = asyncio.create_task(client.request("roots/list", {}, PATIENCE_S))
            asked = (await stream.next())["id"]
            forged: Json = {"id": asked, "result": {"roots": "forged"}}
            assert (await post(other.url, http, theirs, forged, "eve")).status_code == 202
            answer: Json = {"id": asked, "result": {"roots": []}}
            assert (await post(other.url, http, session, answer)).status_code == 202
            assert await asking == {"roots": []}
            one.agent.hold.set()


async def test_a_session_that_is_ended_at_one_replica_ends_its_streams_at_all(pair: Pair) -> None:
    one, other = pair
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session, another = [await begin(one.url, http) for _ in range(2)]
        async with (
            open_get(one.url, http, session) as ends,
            open_get(one.url, http, another) as stays,
        ):
            ended = await http.delete(other.url, headers=in_session(session))
            assert ended.status_code == 204
            await ends.rest()
            await stays.until(await one.changed())
            assert one.endpoint.streams.count == 1
        assert (await post(one.url, http, session, call(1, HOLD))).status_code == 404


async def test_a_stream_is_resumed_at_another_replica(pair: Pair) -> None:
    one, other = pair
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(one.url, http)
        async with open_get(one.url, http, session) as stream:
            await stream.until(await one.changed())
        at = await other.changed()
        async with open_get(other.url, http, session, stream.last_id) as resumed:
            told = await resumed.until(at)
            assert told["method"] == "notifications/tools/list_changed"


async def test_a_cancellation_reaches_the_replica_that_holds_the_call(pair: Pair) -> None:
    one, other = pair
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session, theirs = await begin(one.url, http), await begin(one.url, http)
        calling = asyncio.create_task(post(one.url, http, session, call(5, HOLD)))
        await eventually(lambda: one.agent.sides)
        for sender, request_id in ((theirs, 5), (session, 6), (session, 5)):
            assert one.agent.withdrawn == []
            cancel: Json = {
                "method": "notifications/cancelled",
                "params": {"requestId": request_id},
            }
            assert (await post(other.url, http, sender, cancel)).status_code == 202
        answer = await calling
    assert one.agent.withdrawn == [True]
    assert "-32800" in answer.text
