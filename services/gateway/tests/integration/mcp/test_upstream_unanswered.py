"""Upstream MCP servers that accept a call and return an invalid response."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from pydantic import JsonValue
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from libs.pml_local.tests.support.patience import PATIENCE_S
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
        outcome = await pool.call("web:count", {"key": "once"}, PATIENCE_S)
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
        outcome = await pool.call("web:echo", {"text": "hi"}, PATIENCE_S)
    assert outcome.status == "tool_error"


@pytest.mark.parametrize("status", [400, 403, 429])
async def test_a_call_that_a_server_rejects_is_a_tool_error(
    harness: ServerHarness, status: int
) -> None:
    async with (
        answering(harness, Response("no", status_code=status)) as server,
        connected({"web": server}) as pool,
    ):
        outcome = await pool.call("web:count", {"key": "once"}, PATIENCE_S)
    assert outcome.status == "tool_error"


TOOLS: list[JsonValue] = [
    {"name": name, "inputSchema": {"type": "object"}} for name in ("odd", "fine", "chatty")
]
FINE = (
    '{"jsonrpc":"2.0","id":$ID,"result":'
    '{"content":[{"type":"text","text":"fine"}],"resultType":"complete"}}'
)
UNREADABLE = {
    "a lone surrogate": FINE.replace('"fine"', '"\\ud800"'),
    "a lone surrogate, the id last": (
        '{"result":{"content":[{"type":"text","text":"\\ud800"}]},"id":$ID,"jsonrpc":"2.0"}'
    ),
    "bytes that are not UTF-8": FINE.replace("fine", "\udcff"),
    "half of a message": FINE[:60],
    "a result that is no object": '{"jsonrpc":"2.0","id":$ID,"result":5}',
    "broken, the id last": '{"jsonrpc":"2.0","result":{"content":[,]},"id":$ID}',
}


@pytest.mark.parametrize("line", UNREADABLE)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_line_that_cannot_be_read_fails_its_call_at_once(
    harness: ServerHarness, line: str, version: str
) -> None:
    server = harness.raw(TOOLS, {"odd": [UNREADABLE[line]], "fine": [FINE]}, version)
    async with connected({"raw": server}) as pool:
        outcome = await pool.call("raw:odd", {}, 600)
        again = await pool.call("raw:fine", {}, PATIENCE_S)
    assert outcome.status == "unknown"
    message = str(outcome.message)
    assert message.startswith("its answer is no JSON-RPC message: ")
    assert message.endswith(": the call was sent, and it is unknown whether it took effect")
    assert again.result == "fine"


async def test_lines_that_answer_no_call_are_skipped_and_logged(
    harness: ServerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    noise = ["Server is up", '{"id": 77, "result": 5}', '["id", $ID]', "", '{"level": "\\ud800"}']
    server = harness.raw(TOOLS, {"chatty": [*noise, *["more"] * 20, FINE]})
    async with connected({"raw": server}) as pool:
        outcome = await pool.call("raw:chatty", {}, PATIENCE_S)
    assert outcome.result == "fine"
    skipped = [told for told in caplog.messages if told.startswith("raw: skipped a line")]
    assert skipped[0] == "raw: skipped a line that is no message: 'Server is up'"
    assert len(skipped) == 10
    assert skipped[-1].endswith("'more' (further ones are not logged)")
