"""The bridge between a client on stdio and a gateway, here a server of the SDK."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.shared.inbound import decode_header_value
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from libs.pml_local.tests.support.harness import eventually
from pml_cli.bridge.bridge import Bridge, NoGateway
from pml_cli.bridge.messages import Json, error_answer, headers_of, parsed, refusal
from pml_local.ports import free_port

HELLO: Json = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}

Context = ServerRequestContext[Any, Any]


def _call(number: int, name: str) -> Json:
    params: Json = {"name": name, "arguments": {}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@asynccontextmanager
async def _gateway(port: int) -> AsyncGenerator[list[str]]:
    """Serve tools with sessions: `change` tells of changed tools, `hang` ends when cancelled; yield
    what `hang` does."""
    hung: list[str] = []

    async def list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="hang", input_schema={"type": "object"})])

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "change":
            await ctx.session.send_tool_list_changed()
        if params.name == "hang":
            hung.append("begun")
            try:
                await asyncio.Event().wait()
            finally:
                hung.append("ended")
        return CallToolResult(content=[TextContent(type="text", text=params.name)])

    app = Server("fixture", on_list_tools=list_tools, on_call_tool=call_tool).streamable_http_app()
    config = uvicorn.Config(app, port=port, log_level="error", timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        await eventually(lambda: server.started)
        yield hung
    finally:
        server.should_exit = True
        await serving


class _Client:
    """The client's end: what the bridge wrote."""

    def __init__(self) -> None:
        self.read: list[Json] = []

    async def write(self, message: Json) -> None:
        self.read.append(message)

    async def answer(self, number: int) -> Json:
        """Wait for the answer to a request."""
        found: list[Json] = await eventually(
            lambda: [one for one in self.read if one.get("id") == number and "method" not in one],
        )
        return found[0]

    def heard(self, method: str) -> int:
        """Count the notifications."""
        return sum(one.get("method") == method for one in self.read)


@asynccontextmanager
async def _bridge(url: Callable[[], str]) -> AsyncGenerator[tuple[Bridge, _Client]]:
    async def locate(failed: str | None = None) -> str:
        if failed is not None:
            await asyncio.sleep(0)
        return url()

    client = _Client()
    bridge = Bridge(locate, client.write)
    try:
        yield bridge, client
    finally:
        await bridge.close()


async def _take(bridge: Bridge, *messages: Json) -> None:
    for message in messages:
        await bridge.take(json.dumps(message).encode() + b"\n")


async def test_an_older_clients_session_outlives_a_restart_of_the_gateway() -> None:
    port = free_port()
    async with _bridge(lambda: f"http://127.0.0.1:{port}") as (bridge, client):
        async with _gateway(port):
            await _take(bridge, HELLO, READY)
            assert (await client.answer(0))["result"]["protocolVersion"] == "2025-11-25"
            await _take(bridge, _call(1, "look"))
            assert (await client.answer(1))["result"]["content"][0]["text"] == "look"
        await _take(bridge, _call(2, "again"))  # nobody is there: it waits
        async with _gateway(port):
            assert (await client.answer(2))["result"]["content"][0]["text"] == "again"
            # What changed meanwhile was not heard.
            await eventually(lambda: client.heard("notifications/tools/list_changed"))
        assert [one for one in client.read if one.get("id") == 0] == client.read[:1]


async def test_what_the_gateway_says_by_itself_is_passed_on() -> None:
    port = free_port()
    async with (
        _gateway(port),
        _bridge(lambda: f"http://127.0.0.1:{port}") as (bridge, client),
    ):
        await _take(bridge, HELLO, READY)
        await client.answer(0)

        async def changed() -> bool:
            number = len(client.read) + 100
            await _take(bridge, _call(number, "change"))
            await client.answer(number)
            return client.heard("notifications/tools/list_changed") > 0

        await eventually(changed)


@pytest.mark.parametrize("modern", [True, False])
async def test_a_call_is_cancelled_in_either_generation(modern: bool) -> None:
    port, call = free_port(), _call(1, "hang")
    async with (
        _gateway(port) as hung,
        _bridge(lambda: f"http://127.0.0.1:{port}") as (bridge, client),
    ):
        if modern:
            call["params"]["_meta"] = MODERN | {
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        else:
            await _take(bridge, HELLO, READY)
            await client.answer(0)
        await _take(bridge, call)
        await eventually(lambda: hung == ["begun"])
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        await _take(bridge, cancel | {"params": {"requestId": 1}})
        await eventually(lambda: hung == ["begun", "ended"])


async def test_a_request_without_a_gateway_is_answered_with_what_to_do() -> None:
    def nowhere() -> str:
        raise NoGateway("no PML stack runs: run `pml up`")

    async with _bridge(nowhere) as (bridge, client):
        await bridge.take(b"no json\n")
        await _take(bridge, READY, _call(1, "look"))
        assert (await client.answer(1))["error"] == {
            "code": -32000,
            "message": "no PML stack runs: run `pml up`",
        }
        assert client.read[0]["error"]["code"] == -32700


def test_messages_are_read_alone_and_in_batches() -> None:
    assert parsed(b'{"id": 1}') == [{"id": 1}]
    assert parsed(b'[{"id": 1}, {"id": 2}]') == [{"id": 1}, {"id": 2}]
    assert parsed(b"[1]") is None
    assert parsed(b"{") is None


@pytest.mark.parametrize("name", ["fs_read", "mañana", " edge ", "=?base64?eA==?="])
def test_headers_repeat_what_a_message_says(name: str) -> None:
    call = _call(1, name)
    call["params"]["_meta"] = MODERN
    headers = headers_of(call, None, None)
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert headers["mcp-method"] == "tools/call"
    assert decode_header_value(headers["mcp-name"]) == name
    older = headers_of(_call(1, name), "2025-11-25", "s1")
    assert (older["mcp-protocol-version"], older["mcp-session-id"]) == ("2025-11-25", "s1")
    assert "mcp-session-id" not in headers_of(HELLO, "2025-11-25", "s1")


def test_what_http_refuses_becomes_an_error() -> None:
    error = {"code": -32600, "message": "bad"}
    whole = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    assert refusal(7, 400, whole) == {"jsonrpc": "2.0", "id": 7, "error": error}
    said = json.dumps({"error": {"kind": "forbidden", "message": "not from there"}}).encode()
    told = "the gateway refused the request (HTTP 403): not from there"
    assert refusal(7, 403, said) == error_answer(7, told)
    assert "HTTP 502): bad gateway" in refusal(7, 502, b"bad gateway")["error"]["message"]
