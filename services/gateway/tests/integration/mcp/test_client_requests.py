"""Requests to the client of an open call."""

import asyncio

import httpx2
import pytest
from mcp.client.session import ClientRequestContext
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
)

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.ports import ClientRefused, ClientSide
from services.gateway.tests.integration.mcp.legacy_client import (
    HOLD,
    Json,
    begin,
    call,
    open_post,
    post,
)
from services.gateway.tests.integration.mcp.served_endpoint import ServedEndpoint

pytestmark = pytest.mark.integration

ASK: Json = {
    "message": "Run it?",
    "requestedSchema": {"type": "object", "properties": {"yes": {"type": "boolean"}}},
}
WITH_FORMS: Json = {"elicitation": {}}


async def _accept(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    assert isinstance(params, ElicitRequestFormParams)
    assert params.message == "Run it?"
    return ElicitResult(action="accept", content={"yes": True})


async def _fail(context: ClientRequestContext, params: ElicitRequestParams) -> ErrorData:
    return ErrorData(code=INVALID_PARAMS, message="no such form")


async def _client_side(mcp: ServedEndpoint) -> ClientSide:
    """Return the client's side of the call that is under way."""
    await eventually(lambda: mcp.agent.sides)
    side = mcp.agent.sides[-1].client
    assert side is not None
    return side


def _end(mcp: ServedEndpoint) -> None:
    mcp.agent.answers["execute"] = ExecuteResponse(status="success", result=1)
    mcp.agent.hold.set()


async def test_a_client_with_a_session_answers_while_its_call_waits(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), mcp.client("legacy", elicitation=_accept) as client:
        calling = asyncio.create_task(client.call_tool("pml_execute", HOLD))
        side = await _client_side(mcp)
        assert "elicitation" in side.capabilities
        answers = await asyncio.gather(
            *(side.request("elicitation/create", ASK, PATIENCE_S) for _ in range(3))
        )
        assert answers == [{"action": "accept", "content": {"yes": True}}] * 3
        _end(mcp)
        assert not (await calling).is_error


async def test_the_error_of_a_client_is_its_refusal(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), mcp.client("legacy", elicitation=_fail) as client:
        calling = asyncio.create_task(client.call_tool("pml_execute", HOLD))
        side = await _client_side(mcp)
        with pytest.raises(ClientRefused, match="no such form") as refused:
            await side.request("elicitation/create", ASK, PATIENCE_S)
        assert refused.value.code == INVALID_PARAMS
        _end(mcp)
        await calling


async def test_a_client_of_the_newest_revision_has_capabilities_and_takes_no_requests(
    mcp: ServedEndpoint,
) -> None:
    async with asyncio.timeout(PATIENCE_S), mcp.client("auto", elicitation=_accept) as client:
        calling = asyncio.create_task(client.call_tool("pml_execute", HOLD))
        side = await _client_side(mcp)
        assert "elicitation" in side.capabilities
        with pytest.raises(ClientRefused) as refused:
            await side.request("elicitation/create", ASK, PATIENCE_S)
        assert refused.value.code == METHOD_NOT_FOUND
        _end(mcp)
        await calling


async def test_a_client_without_a_session_is_not_asked(mcp: ServedEndpoint) -> None:
    _end(mcp)
    headers = {"Accept": "application/json, text/event-stream", "X-User": "ada"}
    async with httpx2.AsyncClient() as http:
        body = {"jsonrpc": "2.0", **call(1, HOLD)}
        answer = await http.post(mcp.url, json=body, headers=headers)
    assert '"status":"success"' in answer.text.replace(" ", "")
    assert mcp.agent.sides[0].client is None


async def test_a_client_that_does_not_answer_in_time_is_told_that_it_need_not(
    mcp: ServedEndpoint,
) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(mcp.url, http, capabilities=WITH_FORMS)
        async with open_post(mcp.url, http, session, call(1, HOLD)) as stream:
            side = await _client_side(mcp)
            with pytest.raises(ClientRefused, match="within") as refused:
                await side.request("elicitation/create", ASK, 0.05)
            asked, withdrawn = await stream.next(), await stream.next()
            late = await post(mcp.url, http, session, {"id": asked["id"], "result": {}})
    assert refused.value.code == REQUEST_TIMEOUT
    assert asked["params"] == ASK
    assert withdrawn["method"] == "notifications/cancelled"
    reason = "it was not answered in time"
    assert withdrawn["params"] == {"requestId": asked["id"], "reason": reason}
    assert late.status_code == 202


async def test_a_lost_client_is_not_waited_for(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(mcp.url, http, capabilities=WITH_FORMS)
        async with open_post(mcp.url, http, session, call(1, HOLD)) as stream:
            side = await _client_side(mcp)
            asking = asyncio.create_task(side.request("elicitation/create", ASK, PATIENCE_S))
            await stream.next()
        for _ in range(2):
            with pytest.raises(ClientRefused) as refused:
                await asking
            assert refused.value.code == CONNECTION_CLOSED
            asking = asyncio.create_task(side.request("elicitation/create", ASK, PATIENCE_S))
        asking.cancel()


async def test_only_the_session_that_was_asked_can_answer(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        ours, another = [await begin(mcp.url, http) for _ in range(2)]
        theirs = await begin(mcp.url, http, "eve")
        async with open_post(mcp.url, http, ours, call(1, HOLD)) as stream:
            side = await _client_side(mcp)
            asking = asyncio.create_task(side.request("elicitation/create", ASK, PATIENCE_S))
            asked = (await stream.next())["id"]
            forged: Json = {"id": asked, "result": {"action": "accept"}}
            assert (await post(mcp.url, http, another, forged)).status_code == 202
            assert (await post(mcp.url, http, theirs, forged, "eve")).status_code == 202
            assert (await post(mcp.url, http, ours, forged, "eve")).status_code == 404
            unknown: Json = {"id": "pml-1", "result": {"action": "accept"}}
            assert (await post(mcp.url, http, ours, unknown)).status_code == 202
            assert not asking.done()
            true: Json = {"id": asked, "result": {"action": "decline"}}
            assert (await post(mcp.url, http, ours, true)).status_code == 202
            assert await asking == {"action": "decline"}
            _end(mcp)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"error": {"code": -1, "message": "never"}}, "never"),
        ({"error": "never"}, "no result and no error"),
        ({"result": 5}, "no result and no error"),
    ],
)
async def test_an_answer_without_a_result_is_a_refusal(
    mcp: ServedEndpoint, answer: Json, message: str
) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(mcp.url, http)
        async with open_post(mcp.url, http, session, call(1, HOLD)) as stream:
            side = await _client_side(mcp)
            asking = asyncio.create_task(side.request("elicitation/create", ASK, PATIENCE_S))
            await post(mcp.url, http, session, {"id": (await stream.next())["id"], **answer})
            with pytest.raises(ClientRefused, match=message):
                await asking
            _end(mcp)
