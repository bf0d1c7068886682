"""Upstream MCP servers that accept a call and return an invalid response."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from pml_common.http_server import serve_http
from pml_gateway.domain.servers.server_config import HttpServer
from pml_local.ports import free_port
from services.gateway.tests.integration.mcp.harness import ServerHarness, connected
from services.gateway.tests.integration.mcp.server_program import Program, server_of

pytestmark = pytest.mark.integration

ANSWERS = {
    "500": Response("the disk is full", status_code=500),
    "500 as JSON": JSONResponse({"error": "the disk is full"}, status_code=500),
    "502": Response("<html>bad gateway</html>", status_code=502, media_type="text/html"),
    "nothing": Response(status_code=202),
    "an empty page": Response(status_code=200),
    "a page": Response("<html>hello</html>", media_type="text/html"),
    "half of a JSON text": Response('{"jsonrpc": "2.0", "id"', media_type="application/json"),
    "JSON of something else": JSONResponse([1, 2, 3]),
    "an empty stream": Response(status_code=200, media_type="text/event-stream"),
    "a stream of garbage": Response("data: {{{\n\n", media_type="text/event-stream"),
}


@asynccontextmanager
async def answering(harness: ServerHarness, answer: Response) -> AsyncGenerator[HttpServer]:
    """Run a server whose tools take effect and then return this response."""
    inner = server_of(Program(harness.log, odd=False)).streamable_http_app()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), bool(part.get("more_body"))
        if b"tools/call" in body:
            with harness.log.open("a") as log:
                log.write("took effect\n")
            await answer(scope, receive, send)
            return
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return parts.pop() if parts else await receive()

        await inner(scope, again, send)

    port = free_port()
    async with serve_http(app, "127.0.0.1", port):
        yield HttpServer(url=f"http://127.0.0.1:{port}/mcp", trust="hints")


@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_call_without_a_valid_response_has_an_unknown_outcome(
    harness: ServerHarness, answer: str
) -> None:
    async with (
        answering(harness, ANSWERS[answer]) as server,
        connected({"web": server}) as pool,
    ):
        outcome = await pool.call("web:count", {"key": "once"}, 20)
    assert outcome.status == "unknown"
    assert "the call was sent, and it is unknown whether it took effect" in str(outcome.message)
    assert harness.lines() == ["took effect"]


@pytest.mark.parametrize("answer", ["500", "a page", "half of a JSON text"])
async def test_a_repeatable_call_without_a_valid_response_is_a_tool_error(
    harness: ServerHarness, answer: str
) -> None:
    async with (
        answering(harness, ANSWERS[answer]) as server,
        connected({"web": server}) as pool,
    ):
        outcome = await pool.call("web:echo", {"text": "hi"}, 20)
    assert outcome.status == "tool_error"


@pytest.mark.parametrize("status", [400, 403, 429])
async def test_a_call_that_a_server_rejects_is_a_tool_error(
    harness: ServerHarness, status: int
) -> None:
    async with (
        answering(harness, Response("no", status_code=status)) as server,
        connected({"web": server}) as pool,
    ):
        outcome = await pool.call("web:count", {"key": "once"}, 20)
    assert outcome.status == "tool_error"
