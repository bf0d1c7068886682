"""Upstream MCP servers whose output exceeds the limits."""

import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio.lowlevel
import pytest
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.http_server import serve_http
from pml_gateway.adapters.mcp_client.http_client import MAX_RESULT_BYTES
from pml_gateway.domain.servers.server_config import HttpServer, StdioServer
from pml_local.ports import free_port
from services.gateway.tests.integration.mcp.harness import ServerHarness, connected

pytestmark = pytest.mark.integration

TOO_LONG = f"it wrote a line of more than {MAX_RESULT_BYTES} bytes"
ENDLESS = "import os\nwhile True:\n    os.write(1, b'x' * 65536)"


async def _overlong(harness: ServerHarness) -> None:
    async with connected({"box": harness.stdio()}) as pool:
        outcome = await pool.call("box:huge", {"size": MAX_RESULT_BYTES, "stderr": 0}, PATIENCE_S)
        assert outcome.status == "unknown"
        assert str(outcome.message).startswith(f"{TOO_LONG}: the call was sent")
        again = await pool.call("box:echo", {"text": "hi"}, PATIENCE_S)
        assert again.status == "ok"
    assert harness.lines() == ["huge"]


async def test_an_overlong_line_ends_the_connection_with_an_error(
    harness: ServerHarness,
) -> None:
    await _overlong(harness)


def test_an_overlong_line_ends_the_connection_on_uvloop(harness: ServerHarness) -> None:
    uvloop.run(_overlong(harness))


async def test_a_server_that_only_writes_never_connects_and_status_gives_the_reason() -> None:
    endless = StdioServer(command=sys.executable, args=("-c", ENDLESS))
    async with connected({"endless": endless}) as pool:
        await eventually(lambda: TOO_LONG in str(pool.status()["endless"].error))


async def test_an_overlong_line_of_stderr_is_cut_and_reported_once(
    harness: ServerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with connected({"box": harness.stdio()}) as pool:
            outcome = await pool.call("box:huge", {"size": 1, "stderr": 1_000_000}, PATIENCE_S)
            assert outcome.status == "ok"
    told = [record.getMessage() for record in caplog.records if "yyyy" in record.getMessage()]
    assert told == [f"box: {'y' * 2000} (cut)"]


@asynccontextmanager
async def _endless_site() -> AsyncGenerator[HttpServer]:
    async def answer(request: Request) -> StreamingResponse:
        async def endless() -> AsyncGenerator[bytes]:
            while True:
                yield b" " * 65536
                await anyio.lowlevel.checkpoint()  # once the client is gone nothing else waits

        return StreamingResponse(endless(), media_type="application/json")

    port = free_port()
    app = Starlette(routes=[Route("/mcp", answer, methods=["POST", "GET", "DELETE"])])
    async with serve_http(app, "127.0.0.1", port):
        yield HttpServer(url=f"http://127.0.0.1:{port}/mcp")


async def test_an_endless_body_is_read_up_to_the_limit_of_a_line() -> None:
    async with _endless_site() as server, connected({"web": server}) as pool:
        wanted = f"its answer is longer than {MAX_RESULT_BYTES} bytes"
        await eventually(lambda: wanted in str(pool.status()["web"].error))
