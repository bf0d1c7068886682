"""PML's MCP endpoint, through the official client in each generation of the protocol."""

import asyncio
from collections.abc import Mapping
from typing import Literal
from uuid import UUID

import httpx2
import pytest
from mcp import MCPError
from mcp.client.subscriptions import ServerEvent
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, CallToolResult, TextContent

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.registry import Discover
from pml_common.contracts.tool import JsonObject
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.errors import ResultUnavailable, Unavailable
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.ports import Caller
from services.gateway.tests.integration.mcp.served_endpoint import (
    SCOPE,
    ServedEndpoint,
    served,
)

pytestmark = pytest.mark.integration

WORKFLOW = UUID(int=7)


def _text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("name", ["fs_read", "fs:read"])
async def test_an_upstream_tool_is_called_by_either_name(
    mcp: ServedEndpoint, mode: str, name: str
) -> None:
    async with mcp.client(mode) as client:
        mcp.agent.answers["fs:read"] = ToolOutcome(status="ok", result={"content": "hi"})
        result = await client.call_tool(name, {"path": "/x"})
        assert result.structured_content == {"content": "hi"}
        assert _text(result) == '{"content": "hi"}'
        assert mcp.agent.requests == [("fs:read", {"path": "/x"})]


async def test_a_colliding_name_calls_its_own_tool(mcp: ServedEndpoint, mode: str) -> None:
    async with mcp.client(mode) as client:
        mcp.agent.answers["a_b:c"] = ToolOutcome(status="ok", result="mine")
        listed = {
            (tool.meta or {}).get("pml/tool"): tool.name
            for tool in (await client.list_tools()).tools
        }
        assert _text(await client.call_tool(listed["a_b:c"], {})) == "mine"


async def test_a_program_is_run_for_the_caller(mcp: ServedEndpoint, mode: str) -> None:
    async with mcp.client(mode) as client:
        mcp.agent.answers["execute"] = ExecuteResponse(
            status="success", result=[1], workflow_id=WORKFLOW, capability_name="fs:count"
        )
        arguments = {"code": "return [1]", "intent": "count", "timeout": 5}
        result = await client.call_tool("pml_execute", arguments)
        expected = ExecuteRequest(code="return [1]", intent="count", timeout=5)
        assert mcp.agent.requests == [(SCOPE, "ada", expected)]
        assert not result.is_error
        assert result.structured_content == {
            "status": "success",
            "result": [1],
            "workflowId": str(WORKFLOW),
            "capabilityName": "fs:count",
        }


async def test_a_failed_run_is_an_error_with_a_message(mcp: ServedEndpoint, mode: str) -> None:
    async with mcp.client(mode) as client:
        error = WorkflowError(
            kind="tool_error", message="no such file", tool="fs:read", line=3, column=1
        )
        mcp.agent.answers["execute"] = ExecuteResponse(
            status="error", error=error, workflow_id=WORKFLOW
        )
        result = await client.call_tool("pml_execute", {"code": "x"})
        assert result.is_error
        assert "tool_error: no such file" in _text(result)
        assert "at line 3, column 1" in _text(result)
        assert result.structured_content["status"] == "error"


async def test_discovery_asks_the_registry(mcp: ServedEndpoint, mode: str) -> None:
    async with mcp.client(mode) as client:
        arguments = {"intent": "read", "filter": {"type": "tool", "minScore": 0.2}, "limit": 3}
        result = await client.call_tool("pml_discover", arguments)
        assert mcp.agent.requests == [
            Discover(
                scope=SCOPE,
                principal="ada",
                intent="read",
                type="tool",
                min_score=0.2,
                limit=3,
            )
        ]
        assert result.structured_content["hits"][0]["id"] == "fs:read"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("pml_execute", {"code": 3}, "code is invalid: must be a string"),
        ("pml_execute", {"cod": "x"}, "cod is invalid: unknown field"),
        ("pml_discover", {}, "intent is missing"),
        ("pml_discover", {"intent": "x", "filter": {"minScore": 2}}, "filter.minScore is invalid"),
        ("web_get", {}, "no tool 'web_get' is known: MCP server web is configured, but failed"),
    ],
)
async def test_invalid_arguments_and_absent_servers_are_explained(
    mcp: ServedEndpoint, mode: str, name: str, arguments: JsonObject, words: str
) -> None:
    async with mcp.client(mode) as client:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert words in _text(result)


READ_CALL = """fs_read (inside pml_execute: `await mcp.call("fs:read", {…})`)"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fs_raed", "no tool 'fs_raed'; did you mean fs_read"),
        ("git:log", "no tool 'git:log'"),
        ("read", f"no tool 'read': call {READ_CALL}"),
        ("mcp.fs.read", f"no tool 'mcp.fs.read': call {READ_CALL}"),
        ("fs:tidy", 'pml_execute {"capability": "fs:tidy", "args": {}}'),
        ("fs:tidy", "`await capabilities.fs_tidy({…})`"),
        ("cap_fs_tidi", "no tool 'cap_fs_tidi'"),
    ],
)
async def test_an_unknown_tool_is_an_error_of_the_request_that_says_how_to_call(
    mcp: ServedEndpoint, mode: str, name: str, words: str
) -> None:
    async with mcp.client(mode) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool(name, {})
    assert refused.value.code == INVALID_PARAMS
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (Unavailable("the bus does not answer"), "the bus does not answer"),
        (QueryFailed("not_found", "no such thing"), "no such thing"),
        (BusUnavailable("NATS is away"), "NATS is away; try again later"),
        (StorageUnavailable("Postgres is away"), "Postgres is away; try again later"),
    ],
)
async def test_a_refusal_is_explained(
    mcp: ServedEndpoint, mode: str, refusal: Exception, words: str
) -> None:
    mcp.agent.answers["fs:read"] = refusal
    async with mcp.client(mode) as client:
        result = await client.call_tool("fs_read", {})
    assert result.is_error
    assert _text(result) == words


async def test_an_outage_is_no_empty_listing(mcp: ServedEndpoint, mode: str) -> None:
    mcp.agent.outage = BusUnavailable("NATS is away")
    async with mcp.client(mode) as client:
        with pytest.raises(MCPError, match="tools cannot be listed now: NATS is away"):
            await client.list_tools()


async def test_an_unknown_caller_is_rejected(mcp: ServedEndpoint, mode: str) -> None:
    async with mcp.client(mode, user="mallory") as client:
        with pytest.raises(MCPError, match="mallory is not allowed"):
            await client.list_tools()


async def test_a_slow_program_does_not_delay_others(mcp: ServedEndpoint, mode: str) -> None:
    async with mcp.client(mode) as client:
        mcp.agent.answers["execute"] = ExecuteResponse(status="success", result=None)
        mcp.agent.answers["fs:read"] = ToolOutcome(status="ok", result={"content": "hi"})
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            slow = group.create_task(client.call_tool("pml_execute", {"code": "hold"}))
            await client.call_tool("fs_read", {})
            assert not slow.done()
            mcp.agent.hold.set()
        assert slow.result().structured_content == {"status": "success", "result": None}


async def test_a_listening_client_is_notified_of_changed_tools(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), mcp.client() as client:
        tools = client.server_capabilities.tools
        assert tools is not None
        assert tools.list_changed
        async with client.listen(tools_list_changed=True) as changes:
            await mcp.endpoint.tools_changed()
            assert await anext(changes)


async def test_open_streams_do_not_hold_up_the_end() -> None:
    listening = asyncio.Event()

    async def listen(mcp: ServedEndpoint) -> list[ServerEvent]:
        async with mcp.client() as client, client.listen(tools_list_changed=True) as changes:
            listening.set()
            return [change async for change in changes]

    async with asyncio.timeout(PATIENCE_S):
        async with served() as mcp:
            listener = asyncio.create_task(listen(mcp))
            await listening.wait()
        assert await listener == []


async def test_a_stream_opened_while_the_gateway_stops_ends_at_once(mcp: ServedEndpoint) -> None:
    mcp.endpoint.end_streams()
    async with (
        asyncio.timeout(PATIENCE_S),
        mcp.client() as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        assert [change async for change in changes] == []


async def test_a_call_pending_when_the_gateway_stops_has_an_unknown_outcome(
    mcp: ServedEndpoint,
) -> None:
    async with asyncio.timeout(PATIENCE_S), mcp.client() as client:
        slow = asyncio.create_task(client.call_tool("pml_execute", {"code": "hold"}))
        await eventually(lambda: mcp.agent.requests)
        mcp.endpoint.end_calls()
        answer = await slow
    assert answer.is_error
    assert "its outcome is unknown" in str(answer.content)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:80"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_pages_of_other_sites_are_rejected(
    mcp: ServedEndpoint, headers: dict[str, str], status: int
) -> None:
    response = await _post(mcp, b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', headers)
    assert response.status_code == status


async def test_pages_of_configured_origins_are_accepted() -> None:
    listing = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    async with served(origins=["https://app.example"]) as mcp:
        for origin, status in (("https://app.example", 200), ("https://evil.example", 403)):
            assert (await _post(mcp, listing, {"Origin": origin})).status_code == status


async def test_an_oversize_or_malformed_body_is_rejected(mcp: ServedEndpoint) -> None:
    assert (await _post(mcp, b" " * 100_001)).status_code == 413
    assert (await _post(mcp, b"{")).status_code == 400


@pytest.mark.parametrize(
    "body", [b"{}", b"null", b"[]", b'{"id": 1, "result": 5}', b'{"jsonrpc": "2.0", "method": 7}']
)
async def test_json_that_is_no_message_is_refused_without_the_validators_text(
    mcp: ServedEndpoint, body: bytes
) -> None:
    response = await _post(mcp, body, {"Mcp-Protocol-Version": "2025-11-25"})
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, INVALID_REQUEST)
    assert error["message"].startswith("the body is no JSON-RPC message: send one object with")


async def _post(
    mcp: ServedEndpoint, body: bytes, headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with httpx2.AsyncClient() as http:
        return await http.post(mcp.url, content=body, headers={**accept, **(headers or {})})


@pytest.mark.parametrize("kind", ["unknown", "not_yet", "expired"])
async def test_results_that_cannot_be_returned_are_different_errors(
    mcp: ServedEndpoint, mode: str, kind: Literal["unknown", "not_yet", "expired"]
) -> None:
    mcp.agent.answers["result"] = ResultUnavailable(kind, "why")
    async with mcp.client(mode) as client:
        asked = {"workflow_id": str(WORKFLOW), "task_id": "n1.0", "wait_s": 5}
        result = await client.call_tool("pml_get_task_result", asked)
    assert mcp.agent.requests == [(Caller(SCOPE, "ada"), GetTaskResult.model_validate(asked))]
    assert result.is_error
    assert _text(result) == "why"
    assert result.structured_content == {"error": {"kind": kind, "message": "why"}}


@pytest.mark.parametrize(
    ("answer", "is_error"),
    [
        (WorkflowError(kind="cancelled", message="ada cancelled it"), False),
        (WorkflowError(kind="timeout", message="too slow"), True),
        (None, False),
    ],
)
async def test_a_workflow_is_cancelled_by_its_id(
    mcp: ServedEndpoint, mode: str, answer: WorkflowError | None, is_error: bool
) -> None:
    mcp.agent.answers["stop"] = (
        ExecuteResponse(status="running", workflow_id=WORKFLOW)
        if answer is None
        else ExecuteResponse(status="error", workflow_id=WORKFLOW, error=answer)
    )
    async with mcp.client(mode) as client:
        asked = {"workflow_id": str(WORKFLOW), "reason": "enough"}
        result = await client.call_tool("pml_cancel", asked)
    assert mcp.agent.requests == [(Caller(SCOPE, "ada"), WORKFLOW, "enough")]
    assert result.is_error is is_error
    assert result.structured_content is not None
    assert result.structured_content["workflowId"] == str(WORKFLOW)
