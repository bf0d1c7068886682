"""The drain of an HTTP server: requests it still answers, connections left to the next one."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common import http_server
from pml_common.http_server import HttpServer, inherited, listener_on, serve_http
from pml_local.ports import free_port, listening

pytestmark = pytest.mark.integration
GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


@dataclass
class Site:
    """A server with a page that waits, and a client."""

    server: HttpServer
    http: httpx2.AsyncClient
    port: int
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def site(handed_on: socket.socket | None = None) -> AsyncGenerator[Site]:
    asked, release = asyncio.Event(), asyncio.Event()

    async def page(_: Request) -> PlainTextResponse:
        return PlainTextResponse("here")

    async def held(_: Request) -> PlainTextResponse:
        asked.set()
        await release.wait()
        return PlainTextResponse("at last")

    app = Starlette(routes=[Route("/", page), Route("/held", held)])
    port = free_port() if handed_on is None else int(handed_on.getsockname()[1])
    async with (
        asyncio.timeout(PATIENCE_S),
        serve_http(app, "127.0.0.1", port, handed_on=handed_on) as server,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as http,
    ):
        yield Site(server, http, port, asked, release)


async def test_a_request_in_progress_is_answered_within_the_drain() -> None:
    async with site() as there:
        asked = asyncio.create_task(there.http.get("/held"))
        await there.asked.wait()
        assert not await there.server.drain(0.05)
        drained = asyncio.create_task(there.server.drain(20.0))
        there.release.set()
        assert (await asked).text == "at last"
        assert await drained


async def test_a_longer_request_does_not_delay_the_end() -> None:
    async with site() as there:
        asked = asyncio.create_task(there.http.get("/held"))
        await there.asked.wait()
        assert not await there.server.drain(0.05)
        asked.cancel()


async def test_a_request_sent_as_the_drain_begins_is_answered_and_ends_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "LINGER_S", 20.0)
    async with site() as there, connection(there.port) as (reader, writer):
        writer.write(GET)
        first = await reader.readuntil(b"\r\n\r\nhere")
        drained = asyncio.create_task(there.server.drain(20.0))
        await eventually(lambda: _refused(there.port))
        writer.write(GET)
        second = await reader.read()
        assert b"connection: close" not in first.lower()
        assert second.lower().startswith(b"http/1.1 200")
        assert b"connection: close" in second.lower()
        assert await drained


async def test_an_idle_connection_is_closed() -> None:
    async with site() as there, connection(there.port) as (reader, _):
        assert await there.server.drain(20.0)
        assert await reader.read() == b""


async def test_connections_wait_for_the_next_server_on_an_inherited_socket() -> None:
    with listening(free_port()) as held:
        port = int(held.getsockname()[1])
        async with site(inherited(os.dup(held.fileno()))) as there:
            assert (await there.http.get("/")).text == "here"
        async with AsyncExitStack() as stack:
            ends = [await stack.enter_async_context(connection(port)) for _ in range(50)]
            for _, writer in ends:
                writer.write(GET)
            async with site(inherited(os.dup(held.fileno()))):
                for reader, _ in ends:
                    assert (await reader.readuntil(b"\r\n\r\nhere")).startswith(b"HTTP/1.1 200")


async def test_children_do_not_inherit_the_socket() -> None:
    with listening(free_port()) as held:
        os.set_inheritable(fd := os.dup(held.fileno()), True)
        with inherited(fd):
            assert not os.get_inheritable(fd)


def test_a_descriptor_that_is_no_listening_socket_is_refused() -> None:
    with pytest.raises(OSError, match="987654 is no socket"):
        inherited(987654)
    with socket.socket() as silent, pytest.raises(OSError, match="does not listen"):
        inherited(os.dup(silent.fileno()))


@asynccontextmanager
async def connection(
    port: int,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _refused(port: int) -> bool:
    try:
        async with connection(port):
            return False
    except ConnectionError:
        return True


async def test_small_responses_do_not_wait_for_acknowledgements() -> None:
    accepted: asyncio.Queue[int] = asyncio.Queue()

    def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = writer.get_extra_info("socket")
        accepted.put_nowait(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    port = free_port()
    async with await asyncio.start_server(look, sock=listener_on("127.0.0.1", port)):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(PATIENCE_S):
            assert await accepted.get(), "Nagle's algorithm is on"
        writer.close()
        await writer.wait_closed()
