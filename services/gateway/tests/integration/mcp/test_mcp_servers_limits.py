"""MCP servers that write more than anybody keeps."""

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
from pml_common.http_server import serve_http
from pml_gateway.adapters.mcp_client.transport import MAX_RESULT_BYTES
from pml_gateway.domain.servers.server_config import HttpServer, StdioServer
from pml_local.ports import free_port
from services.gateway.tests.integration.mcp.harness import ServerWorld, connected

pytestmark = pytest.mark.integration

TOO_LONG = f"it wrote a line of more than {MAX_RESULT_BYTES} bytes"
ENDLESS = "import os\nwhile True:\n    os.write(1, b'x' * 65536)"


async def _overlong(world: ServerWorld) -> None:
    async with connected({"box": world.stdio()}) as pool:
        outcome = await pool.call("box:huge", {"size": MAX_RESULT_BYTES, "stderr": 0}, 20)
        assert outcome.status == "unknown"
        assert str(outcome.message).startswith(f"{TOO_LONG}: the call was sent")
        again = await pool.call("box:echo", {"text": "hi"}, 20)
        assert again.status == "ok"
    assert world.lines() == ["huge"]


async def test_a_line_that_is_too_long_ends_that_connection_and_says_so(world: ServerWorld) -> None:
    await _overlong(world)


def test_it_does_so_on_the_loop_that_the_gateway_runs(world: ServerWorld) -> None:
    uvloop.run(_overlong(world))


async def test_a_server_that_only_writes_never_connects_and_status_says_why() -> None:
    endless = StdioServer(command=sys.executable, args=("-c", ENDLESS))
    async with connected({"endless": endless}) as pool:
        await eventually(lambda: TOO_LONG in str(pool.status()["endless"].error), within=30.0)


async def test_a_line_of_stderr_that_is_too_long_is_told_once_and_cut(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with connected({"box": world.stdio()}) as pool:
            outcome = await pool.call("box:huge", {"size": 1, "stderr": 1_000_000}, 20)
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


async def test_a_body_without_end_is_read_as_far_as_a_line() -> None:
    async with _endless_site() as server, connected({"web": server}) as pool:
        wanted = f"its answer is longer than {MAX_RESULT_BYTES} bytes"
        await eventually(lambda: wanted in str(pool.status()["web"].error), within=30.0)
