"""Sessions of older clients whose requests come to different gateways."""

import asyncio
from collections.abc import AsyncGenerator

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.memory_broker import MemoryBroker
from pml_gateway.domain.api.api import ExecuteResponse
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

Pair = tuple[ServedEndpoint, ServedEndpoint]


@pytest.fixture
async def pair() -> AsyncGenerator[Pair]:
    """Two replicas."""
    broker = MemoryBroker()
    async with served(broker=broker) as one, served(broker=broker) as other:
        for each in (one, other):
            each.agent.answers["execute"] = ExecuteResponse(status="success", result=1)
        yield one, other


async def test_any_replica_serves_a_session(pair: Pair) -> None:
    one, other = pair
    one.agent.hold.set()
    other.agent.hold.set()
    async with asyncio.timeout(30), httpx2.AsyncClient() as http:
        session = await begin(one.url, http, capabilities={"sampling": {}})
        for each in (other, one):
            assert (await post(each.url, http, session, call(1, HOLD))).status_code == 200
            (side,) = each.agent.sides
            assert side.client is not None
            assert side.client.capabilities == {"sampling": {}}


async def test_an_answer_reaches_the_replica_that_asked(pair: Pair) -> None:
    one, other = pair
    async with asyncio.timeout(30), httpx2.AsyncClient() as http:
        session, theirs = await begin(one.url, http), await begin(other.url, http, "eve")
        async with open_post(one.url, http, session, call(1, HOLD)) as stream:
            await eventually(lambda: one.agent.sides)
            client = one.agent.sides[0].client
            assert client is not None
            asking = asyncio.create_task(client.request("roots/list", {}, 20.0))
            asked = (await stream.next())["id"]
            forged: Json = {"id": asked, "result": {"roots": "forged"}}
            assert (await post(other.url, http, theirs, forged, "eve")).status_code == 202
            answer: Json = {"id": asked, "result": {"roots": []}}
            assert (await post(other.url, http, session, answer)).status_code == 202
            assert await asking == {"roots": []}
            one.agent.hold.set()


async def test_a_session_that_is_ended_at_one_replica_ends_its_streams_at_all(pair: Pair) -> None:
    one, other = pair
    async with asyncio.timeout(30), httpx2.AsyncClient() as http:
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
    async with asyncio.timeout(30), httpx2.AsyncClient() as http:
        session = await begin(one.url, http)
        async with open_get(one.url, http, session) as stream:
            await stream.until(await one.changed())
        at = await other.changed()
        async with open_get(other.url, http, session, stream.last_id) as resumed:
            told = await resumed.until(at)
            assert told["method"] == "notifications/tools/list_changed"


async def test_a_cancellation_reaches_the_replica_that_holds_the_call(pair: Pair) -> None:
    one, other = pair
    async with asyncio.timeout(30), httpx2.AsyncClient() as http:
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
