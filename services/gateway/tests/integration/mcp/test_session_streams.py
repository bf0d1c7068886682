"""Sessions of older clients: their streams, their end, their limits."""

import asyncio

import httpx2
import pytest
from mcp.client.session import IncomingMessage
from mcp_types import ToolListChangedNotification

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from services.gateway.tests.integration.mcp.legacy_client import (
    ACCEPT,
    LEGACY,
    Json,
    begin,
    call,
    in_session,
    open_get,
    post,
)
from services.gateway.tests.integration.mcp.served_endpoint import ServedEndpoint, served

pytestmark = pytest.mark.integration

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


async def test_an_older_client_is_told_of_changed_tools(mcp: ServedEndpoint) -> None:
    told: list[IncomingMessage] = []

    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.append(message)

    async with asyncio.timeout(PATIENCE_S), mcp.client("legacy", on_message=hear) as client:
        tools = client.server_capabilities.tools
        assert tools is not None
        assert tools.list_changed
        await client.list_tools()
        for times in (1, 2):  # that this endpoint has only just begun may count as a change
            await mcp.endpoint.tools_changed()
            await eventually(lambda times=times: len(told) >= times)


async def test_every_stream_of_a_session_hears_of_changes_and_what_it_missed(
    mcp: ServedEndpoint,
) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(mcp.url, http)
        async with (
            open_get(mcp.url, http, session) as one,
            open_get(mcp.url, http, session) as other,
        ):
            for _ in range(2):
                at = await mcp.changed()
                for stream in (one, other):
                    assert await stream.until(at) == CHANGED
            assert one.last_id == other.last_id
        at = await mcp.changed()
        async with open_get(mcp.url, http, session, one.last_id) as again:
            assert await again.until(at) == CHANGED


async def test_a_session_that_is_ended_is_gone(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(mcp.url, http)
        async with open_get(mcp.url, http, session) as stream:
            theirs = await http.delete(mcp.url, headers=in_session(session, "eve"))
            assert theirs.status_code == 404
            ended = await http.delete(mcp.url, headers=in_session(session))
            assert (ended.status_code, ended.content) == (204, b"")
            await stream.rest()
        for method in ("GET", "DELETE"):
            answer = await http.request(method, mcp.url, headers=in_session(session))
            assert answer.status_code == 404
        answer = await post(mcp.url, http, session, call(1, {"code": "x"}))
        assert answer.status_code == 404
        assert "begin a new one with initialize" in answer.json()["error"]["message"]
        assert await begin(mcp.url, http) != session


async def test_the_official_client_ends_its_session(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(6):  # more than a credential may have at once
            async with mcp.client("legacy") as client:
                await client.list_tools()


async def test_sessions_and_streams_of_one_credential_are_limited(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        sessions = [await begin(mcp.url, http) for _ in range(4)]
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
        params = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        headers = {**ACCEPT, "X-User": "ada"}
        refused = await http.post(mcp.url, json={**body, "params": params}, headers=headers)
        assert refused.status_code == 429
        assert "has 4 MCP sessions" in refused.json()["error"]["message"]
        assert refused.headers["retry-after"] == "60"
        await begin(mcp.url, http, "eve")
        async with open_get(mcp.url, http, sessions[0]), open_get(mcp.url, http, sessions[1]):
            refused = await http.get(mcp.url, headers=in_session(sessions[2]))
            assert refused.status_code == 429
        await eventually(lambda: mcp.endpoint.streams.count == 0)
        async with open_get(mcp.url, http, sessions[2]):
            pass


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"X-User": "eve"}, 404),
        ("GET", {"X-User": "mallory"}, 403),
        ("GET", {"Accept": "application/json"}, 406),
        ("GET", {"Host": "evil.example"}, 421),
        ("GET", {"MCP-Protocol-Version": "2026-07-28"}, 405),
        ("DELETE", {"Origin": "http://evil.example"}, 403),
        ("PUT", {}, 405),
    ],
)
async def test_what_is_no_request_in_a_session_is_refused(
    mcp: ServedEndpoint, method: str, headers: dict[str, str], status: int
) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(mcp.url, http)
        answer = await http.request(method, mcp.url, headers={**in_session(session), **headers})
        assert answer.status_code == status


async def test_without_the_bus_sessions_cannot_be_read(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(mcp.url, http)
        mcp.bus.broker.available = False
        answer = await post(mcp.url, http, session, call(1, {"code": "x"}))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        mcp.bus.broker.available = True


async def test_a_handshake_that_is_malformed_begins_no_session(mcp: ServedEndpoint) -> None:
    async with httpx2.AsyncClient() as http:
        body: Json = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        answer = await http.post(mcp.url, json=body, headers=ACCEPT)
    assert "mcp-session-id" not in answer.headers
    assert "error" in answer.text


async def test_an_idle_stream_is_kept_open_by_comments() -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        served(stream_beat_s=0.01) as mcp,
        httpx2.AsyncClient() as http,
    ):
        session = await begin(mcp.url, http)
        async with open_get(mcp.url, http, session) as stream:
            for _ in range(3):
                await stream.comment()


async def test_the_oldest_clients_get_no_event_without_data(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        sessions = [await begin(mcp.url, http, version=each) for each in ("2025-03-26", None)]
        mcp.endpoint.end_streams()
        old, new = [await _stream(mcp, http, session) for session in sessions]
    assert old == [": open"]
    assert [line.partition(":")[0] for line in new] == ["id", "retry", "data"]


async def _stream(mcp: ServedEndpoint, http: httpx2.AsyncClient, session: str) -> list[str]:
    async with open_get(mcp.url, http, session) as stream:
        return [line for line in await stream.rest() if line]


async def test_streams_end_when_the_gateway_stops() -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        async with served() as mcp:
            session = await begin(mcp.url, http)
            opened = asyncio.Event()

            async def follow() -> None:
                async with open_get(mcp.url, http, session) as stream:
                    opened.set()
                    await stream.rest()

            following = asyncio.create_task(follow())
            await opened.wait()
        await following


async def test_a_client_without_a_session_has_no_stream(mcp: ServedEndpoint) -> None:
    async with httpx2.AsyncClient() as http:
        for method in ("GET", "DELETE"):
            answer = await http.request(method, mcp.url, headers=LEGACY)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
