"""MCP servers that take a call and answer with what is no answer."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from pml_common.http_server import serve_http
from pml_gateway.domain.servers.server_config import HttpServer
from pml_local.ports import free_port
from services.gateway.tests.integration.mcp.harness import ServerWorld, connected
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
async def answering(world: ServerWorld, answer: Response) -> AsyncGenerator[HttpServer]:
    """A server that takes effect when a tool is called, and then answers this."""
    inner = server_of(Program(world.log, odd=False)).streamable_http_app()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), bool(part.get("more_body"))
        if b"tools/call" in body:
            with world.log.open("a") as log:
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
async def test_a_call_that_was_sent_and_not_answered_has_an_unknown_outcome(
    world: ServerWorld, answer: str
) -> None:
    async with (
        answering(world, ANSWERS[answer]) as server,
        connected({"web": server}) as pool,
    ):
        outcome = await pool.call("web:count", {"key": "once"}, 20)
    assert outcome.status == "unknown"
    assert "the call was sent, and it is unknown whether it took effect" in str(outcome.message)
    assert world.lines() == ["took effect"]


@pytest.mark.parametrize("answer", ["500", "a page", "half of a JSON text"])
async def test_what_may_be_repeated_and_was_not_answered_is_a_tools_failure(
    world: ServerWorld, answer: str
) -> None:
    async with (
        answering(world, ANSWERS[answer]) as server,
        connected({"web": server}) as pool,
    ):
        outcome = await pool.call("web:echo", {"text": "hi"}, 20)
    assert outcome.status == "tool_error"


@pytest.mark.parametrize("status", [400, 403, 429])
async def test_a_call_that_a_server_turns_away_is_a_tools_failure(
    world: ServerWorld, status: int
) -> None:
    async with (
        answering(world, Response("no", status_code=status)) as server,
        connected({"web": server}) as pool,
    ):
        outcome = await pool.call("web:count", {"key": "once"}, 20)
    assert outcome.status == "tool_error"
