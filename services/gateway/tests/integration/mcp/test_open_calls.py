"""Calls that are under way: their progress and their cancellation, through the official client in
each generation of the protocol."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise
from uuid import UUID

import httpx2
import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_gateway.domain.api.api import ExecuteResponse
from services.gateway.tests.integration.mcp.legacy_client import (
    HOLD,
    Json,
    begin,
    call,
    post,
)
from services.gateway.tests.integration.mcp.served_endpoint import ServedEndpoint, served

pytestmark = pytest.mark.integration

WORKFLOW = UUID(int=7)
DONE = ExecuteResponse(status="success", result=1, workflow_id=WORKFLOW)


@pytest.fixture
async def mcp() -> AsyncGenerator[ServedEndpoint]:
    async with served(beat_s=0.01) as mcp:
        mcp.agent.answers["execute"] = DONE
        yield mcp


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """The way in which the official client connects."""
    return str(request.param)


async def test_without_a_progress_token_a_call_is_answered_within_45_seconds(
    mcp: ServedEndpoint, mode: str
) -> None:
    clock = asyncio.get_running_loop().time
    async with mcp.client(mode) as client:
        before = clock()
        await client.call_tool("pml_execute", {"code": "x"})
        after = clock()
    (side,) = mcp.agent.sides
    assert side.report is None
    assert side.answer_by is not None
    assert before + 45 <= side.answer_by <= after + 45


async def test_an_execution_with_a_time_limit_of_its_own_is_waited_for(
    mcp: ServedEndpoint, mode: str
) -> None:
    async with mcp.client(mode) as client:
        await client.call_tool("pml_execute", {"code": "x", "timeout": 300})
    (side,) = mcp.agent.sides
    assert (side.answer_by, side.report) == (None, None)


async def test_progress_grows_with_each_notification_and_tells_of_the_calls_reached(
    mcp: ServedEndpoint, mode: str
) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with asyncio.timeout(PATIENCE_S), mcp.client(mode) as client:
        calling = asyncio.create_task(client.call_tool("pml_execute", HOLD, progress_callback=tell))
        await eventually(lambda: len(told) > 2)
        (side,) = mcp.agent.sides
        assert side.answer_by is None
        assert side.report is not None
        for done in (1, 2):
            await side.report(done, 3, f"{done} of 3")
            await eventually(lambda of=done: any(one[2] == f"{of} of 3" for one in told))
        count = len(told)
        await eventually(lambda: len(told) > count + 2)
        mcp.agent.hold.set()
        await calling
    assert all(before[0] < after[0] < 2 for before, after in pairwise(told))
    assert told[0][1:] == (None, "accepted")
    assert told[-1][1:] == (3, "2 of 3")


async def _cancelled(mcp: ServedEndpoint, mode: str) -> None:
    """Make a call and cancel it once it is under way; the connection stays in use."""
    async with mcp.client(mode) as client:
        calling = asyncio.create_task(client.call_tool("pml_execute", HOLD))
        await eventually(lambda: mcp.agent.sides)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await eventually(lambda: mcp.agent.withdrawn)
        again = await client.call_tool("pml_execute", {"code": "x"})
        assert not again.is_error


async def test_a_call_that_its_client_cancels_is_withdrawn(mcp: ServedEndpoint, mode: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await _cancelled(mcp, mode)
    assert mcp.agent.withdrawn == [True]
    assert await mcp.agent.sides[0].is_gone() is (mode == "legacy")


CALL = call(5, HOLD)


def _cancel(request_id: JsonValue) -> Json:
    return {"method": "notifications/cancelled", "params": {"requestId": request_id}}


async def test_no_session_cancels_the_calls_of_another(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        ours, theirs = await begin(mcp.url, http), await begin(mcp.url, http)
        assert ours != theirs
        calling = asyncio.create_task(post(mcp.url, http, ours, CALL))
        await eventually(lambda: mcp.agent.sides)
        for session, request_id in ((theirs, 5), (ours, 6), (ours, None)):
            assert (await post(mcp.url, http, session, _cancel(request_id))).status_code == 202
        assert mcp.agent.withdrawn == []
        assert (await post(mcp.url, http, ours, _cancel(5))).status_code == 202
        answer = await calling
    assert mcp.agent.withdrawn == [True]
    assert "-32800" in answer.text


async def test_a_lost_connection_of_an_older_client_cancels_nothing(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S):
        async with httpx2.AsyncClient() as http:
            session = await begin(mcp.url, http)
            calling = asyncio.create_task(post(mcp.url, http, session, CALL))
            await eventually(lambda: mcp.agent.sides)
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
        (side,) = mcp.agent.sides
        await eventually(side.is_gone)
    assert mcp.agent.withdrawn == []
    mcp.agent.hold.set()


async def test_a_gateway_that_stops_withdraws_nothing(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), mcp.client() as client:
        calling = asyncio.create_task(client.call_tool("pml_execute", HOLD))
        await eventually(lambda: mcp.agent.sides)
        mcp.endpoint.end_streams()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await eventually(lambda: mcp.agent.withdrawn)
    assert mcp.agent.withdrawn == [False]
