"""Bounds on the size of requests besides their bodies, and on the time of reading them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.http_server import serve_http
from pml_gateway.entrypoints.http.http_protocol import MAX_OVERHEAD, ReadTimeouts, protocol_with
from pml_local.ports import free_port

pytestmark = pytest.mark.integration

START = b"POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"
TOO_LONG, LATE = b"HTTP/1.1 431 ", b"HTTP/1.1 408 "
PATIENT = ReadTimeouts(head_s=60.0, body_s=60.0)
AT_ONCE = ReadTimeouts(head_s=0.05, body_s=0.05)


@dataclass
class Connection:
    """A connection to a site that counts bytes of bodies; `/slow` responds after `release`,
    `/stream` begins its response before reading."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()


@asynccontextmanager
async def connected(timeouts: ReadTimeouts) -> AsyncGenerator[Connection]:
    """Open a connection to a server with these timeouts."""

    async def length(request: Request) -> PlainTextResponse:
        try:
            return PlainTextResponse(f"{len(await request.body())} bytes")
        except ClientDisconnect:
            return PlainTextResponse("nobody reads this")

    async def header(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"<{request.headers['x']}>")

    async def slow(request: Request) -> PlainTextResponse:
        await connection.release.wait()
        return PlainTextResponse("at last")

    async def stream(request: Request) -> StreamingResponse:
        async def begun() -> AsyncIterator[bytes]:
            yield b"begun"
            await connection.release.wait()

        return StreamingResponse(begun())

    routes = [
        Route("/", length, methods=["POST"]),
        Route("/slow", slow),
        Route("/header", header),
        Route("/stream", stream, methods=["POST"]),
    ]
    port = free_port()
    async with (
        serve_http(Starlette(routes=routes), "127.0.0.1", port, protocol_with(timeouts)),
        asyncio.timeout(PATIENCE_S),
    ):
        connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
        try:
            yield connection
        finally:
            connection.release.set()
            connection.writer.close()


async def _answer(*sent: bytes, timeouts: ReadTimeouts = PATIENT) -> bytes:
    async with connected(timeouts) as connection:
        try:
            await connection.send(*sent)
            return await connection.reader.read()
        except ConnectionError:  # closed with unread input, so the response is lost
            return TOO_LONG


@pytest.mark.parametrize("more", [b"x", b"A: x\r\n"])
async def test_endless_headers_are_rejected(more: bytes) -> None:
    answer = await _answer(START, b"Long: ", (more * MAX_OVERHEAD)[:MAX_OVERHEAD])
    assert answer.startswith(TOO_LONG)


@pytest.mark.parametrize(
    "head",
    [
        START + b"Long: " + b"x" * MAX_OVERHEAD + b"\r\n\r\n",
        START + b"A: x\r\n" * (MAX_OVERHEAD // 6) + b"\r\n",
        b"POST /" + b"x" * MAX_OVERHEAD + b" HTTP/1.1\r\nHost: here\r\n\r\n",
    ],
    ids=["one header", "many headers", "the request line"],
)
async def test_long_headers_are_rejected(head: bytes) -> None:
    """Sent in one write, so that one read of the socket may return all of it."""
    assert (await _answer(head + b"x" * 100)).startswith(TOO_LONG)


async def test_endless_trailers_are_rejected() -> None:
    answer = await _answer(CHUNKED + b"1\r\nx\r\n0\r\n", b"Long: ", *([b"x" * MAX_OVERHEAD] * 16))
    assert answer.startswith(TOO_LONG)


async def test_extensions_of_chunks_count_too() -> None:
    chunk = b"1;" + b"x" * 1000 + b"\r\nx\r\n"
    assert (await _answer(CHUNKED, *([chunk] * 1000))).startswith(TOO_LONG)


async def test_the_bound_applies_to_each_request_not_to_the_connection() -> None:
    head = b"POST / HTTP/1.1\r\nHost: here\r\nLong: " + b"x" * (MAX_OVERHEAD // 2) + b"\r\n"
    async with connected(PATIENT) as connection:
        for _ in range(4):
            await connection.send(head + b"Content-Length: 3\r\n\r\nabc")
            assert b"200 OK" in await connection.reader.readuntil(b"3 bytes")


async def test_blanks_around_a_header_are_no_part_of_it() -> None:
    head = b"GET /header HTTP/1.1\r\nHost: here\r\nConnection: close\r\nX: \t a b \t \r\n\r\n"
    assert (await _answer(head)).endswith(b"<a b>")


async def test_a_long_body_does_not_count() -> None:
    body = b"x" * (8 * MAX_OVERHEAD)
    answer = await _answer(START + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert answer.endswith(b"%d bytes" % len(body))


async def test_a_body_in_chunks_of_one_byte_is_read() -> None:
    answer = await _answer(CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n")
    assert b"50000 bytes" in answer


@pytest.mark.parametrize(
    "sent",
    [b"P", START, START + b"Long: x"],
    ids=["a byte", "some headers", "half a header"],
)
async def test_incomplete_headers_get_408_after_the_timeout(sent: bytes) -> None:
    answer = await _answer(sent, timeouts=AT_ONCE)
    assert answer.startswith(LATE)
    assert answer.endswith(b"the request was incomplete after its time\n")


@pytest.mark.parametrize(
    "sent",
    [START + b"Content-Length: 5\r\n\r\nabc", CHUNKED + b"5\r\nabc", CHUNKED + b"1\r\nx\r\n0\r\n"],
    ids=["counted", "chunked", "without its trailers"],
)
async def test_an_incomplete_body_gets_408_after_the_timeout(sent: bytes) -> None:
    assert (await _answer(sent, timeouts=AT_ONCE)).startswith(LATE)


async def test_an_idle_connection_is_closed_without_a_response() -> None:
    assert await _answer(timeouts=AT_ONCE) == b""


async def test_an_incomplete_body_under_a_begun_response_ends_the_connection() -> None:
    sent = b"POST /stream HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nabc"
    answer = await _answer(sent, timeouts=AT_ONCE)
    assert b"begun" in answer
    assert LATE not in answer


async def test_incomplete_headers_behind_a_running_request_do_not_end_it() -> None:
    async with connected(AT_ONCE) as connection:
        await connection.send(b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n", b"GET /slow HT")
        loop, waited = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(AT_ONCE.body_s * 4, waited.set)
        await waited.wait()
        connection.release.set()
        answer = await connection.reader.read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert LATE in answer.partition(b"at last")[2]
