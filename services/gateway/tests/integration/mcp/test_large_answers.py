"""Answers larger than the event that a client accepts."""

import asyncio
from uuid import UUID

import httpx2
import pytest
from mcp_types import LoggingMessageNotificationParams, TextContent

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.gateway import ToolOutcome
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.log_levels import log_params
from pml_gateway.entrypoints.mcp.large_answers import MAX_EVENT_BYTES
from pml_gateway.ports import LogMessage
from services.gateway.tests.integration.mcp.legacy_client import begin, call, post
from services.gateway.tests.integration.mcp.served_endpoint import ServedEndpoint

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

LARGE = "é" * MAX_EVENT_BYTES
DONE = ExecuteResponse(status="success", workflow_id=UUID(int=5), result=LARGE)
EACH_MODE = pytest.mark.parametrize("mode", ["auto", "legacy"])


@EACH_MODE
async def test_a_large_result_reaches_the_official_client(mcp: ServedEndpoint, mode: str) -> None:
    mcp.agent.answers["execute"] = DONE
    async with asyncio.timeout(PATIENCE_S), mcp.client(mode) as client:
        answer = await client.call_tool("pml_execute", {"code": "x"})
        assert answer.structured_content is not None
        assert answer.structured_content["result"] == LARGE
        again = await client.call_tool("pml_execute", {"code": "x"})  # the connection is as before
    assert again.structured_content == answer.structured_content


async def test_an_answer_is_an_event_up_to_the_limit_and_plain_json_above(
    mcp: ServedEndpoint,
) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(mcp.url, http)
        kinds: list[str] = []
        for result in ("small", LARGE):
            mcp.agent.answers["execute"] = DONE.model_copy(update={"result": result})
            answer = await post(mcp.url, http, session, call(1, {"code": "x"}))
            kinds.append(answer.headers["content-type"].split(";")[0])
        whole = answer.json()
    assert kinds == ["text/event-stream", "application/json"]
    assert whole["id"] == 1
    assert whole["result"]["structuredContent"]["result"] == LARGE


async def test_after_other_events_a_large_result_is_named_with_the_way_to_it(
    mcp: ServedEndpoint,
) -> None:
    mcp.agent.logged = [LogMessage("info", log_params("fs", "info", None, "reading"))]
    mcp.agent.answers["fs:read"] = ToolOutcome(status="ok", result={"content": LARGE})
    heard: list[object] = []

    async def hear(params: LoggingMessageNotificationParams) -> None:
        heard.append(params.data)

    async with (
        asyncio.timeout(PATIENCE_S),
        mcp.client(on_log=hear, log_level="info") as client,
    ):
        answer = await client.call_tool("fs_read", {})
    assert heard == ["reading"]
    assert answer.is_error
    (content,) = answer.content
    assert isinstance(content, TextContent)
    assert content.text.startswith("The call has ended. Its result has ")
    assert f"an event of a stream may have {MAX_EVENT_BYTES:,}" in content.text
