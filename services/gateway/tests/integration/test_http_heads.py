"""Limits and timeouts of unauthenticated request heads, and of bodies that do not arrive."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from pml_common.http_server import serve_http
from pml_gateway.entrypoints.http.heads import MOST_BYTES, Waits, bounded_by
from pml_local.ports import free_port

pytestmark = pytest.mark.integration

START = b"POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"
TOO_LONG, LATE = b"HTTP/1.1 431 ", b"HTTP/1.1 408 "
PATIENT = Waits(head_s=60.0, body_s=60.0)
AT_ONCE = Waits(head_s=0.05, body_s=0.05)


@dataclass
class Site:
    """An app that counts the bytes of bodies; `/slow` answers on release, `/stream` answers
    before it reads."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def say(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()


@asynccontextmanager
async def site(waits: Waits) -> AsyncGenerator[Site]:
    """Open one connection to a server that reads with these bounds."""

    async def length(request: Request) -> PlainTextResponse:
        try:
            return PlainTextResponse(f"{len(await request.body())} bytes")
        except ClientDisconnect:
            return PlainTextResponse("nobody reads this")

    async def slow(request: Request) -> PlainTextResponse:
        await there.release.wait()
        return PlainTextResponse("at last")

    async def stream(request: Request) -> StreamingResponse:
        async def begun() -> AsyncIterator[bytes]:
            yield b"begun"
            await there.release.wait()

        return StreamingResponse(begun())

    routes = [
        Route("/", length, methods=["POST"]),
        Route("/slow", slow),
        Route("/stream", stream, methods=["POST"]),
    ]
    port = free_port()
    async with (
        serve_http(Starlette(routes=routes), "127.0.0.1", port, bounded_by(waits)),
        asyncio.timeout(10),
    ):
        there = Site(*await asyncio.open_connection("127.0.0.1", port))
        try:
            yield there
        finally:
            there.release.set()
            there.writer.close()


async def _answer(*said: bytes, waits: Waits = PATIENT) -> bytes:
    async with site(waits) as there:
        try:
            await there.say(*said)
            return await there.reader.read()
        except ConnectionError:  # ended with something of it unread, the answer is lost
            return TOO_LONG


@pytest.mark.parametrize("more", [b"x", b"A: x\r\n"])
async def test_a_head_that_does_not_end_is_refused(more: bytes) -> None:
    answer = await _answer(START, b"Long: ", (more * MOST_BYTES)[:MOST_BYTES])
    assert answer.startswith(TOO_LONG)


@pytest.mark.parametrize(
    "head",
    [
        START + b"Long: " + b"x" * MOST_BYTES + b"\r\n\r\n",
        START + b"A: x\r\n" * (MOST_BYTES // 6) + b"\r\n",
        b"POST /" + b"x" * MOST_BYTES + b" HTTP/1.1\r\nHost: here\r\n\r\n",
    ],
    ids=["one header", "many headers", "the request line"],
)
async def test_a_head_that_ends_too_late_is_refused(head: bytes) -> None:
    """Send all of it in one write: one read of the socket may return it completely."""
    assert (await _answer(head + b"x" * 100)).startswith(TOO_LONG)


async def test_what_follows_a_body_and_does_not_end_is_refused() -> None:
    answer = await _answer(CHUNKED + b"1\r\nx\r\n0\r\n", b"Long: ", *([b"x" * MOST_BYTES] * 16))
    assert answer.startswith(TOO_LONG)


async def test_extensions_of_chunks_count_too() -> None:
    chunk = b"1;" + b"x" * 1000 + b"\r\nx\r\n"
    assert (await _answer(CHUNKED, *([chunk] * 1000))).startswith(TOO_LONG)


async def test_the_bound_is_of_each_request_not_of_the_connection() -> None:
    head = b"POST / HTTP/1.1\r\nHost: here\r\nLong: " + b"x" * (MOST_BYTES // 2) + b"\r\n"
    async with site(PATIENT) as there:
        for _ in range(4):
            await there.say(head + b"Content-Length: 3\r\n\r\nabc")
            assert b"200 OK" in await there.reader.readuntil(b"3 bytes")


async def test_a_long_body_is_no_head() -> None:
    body = b"x" * (8 * MOST_BYTES)
    answer = await _answer(START + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert answer.endswith(b"%d bytes" % len(body))


async def test_a_body_in_chunks_of_one_byte_is_read() -> None:
    answer = await _answer(CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n")
    assert b"50000 bytes" in answer


@pytest.mark.parametrize(
    "said",
    [b"P", START, START + b"Long: x"],
    ids=["a byte", "some headers", "half a header"],
)
async def test_half_a_head_is_answered_with_408_in_time(said: bytes) -> None:
    answer = await _answer(said, waits=AT_ONCE)
    assert answer.startswith(LATE)
    assert answer.endswith(b"the request was not whole in time\n")


@pytest.mark.parametrize(
    "said",
    [START + b"Content-Length: 5\r\n\r\nabc", CHUNKED + b"5\r\nabc", CHUNKED + b"1\r\nx\r\n0\r\n"],
    ids=["counted", "chunked", "without its trailers"],
)
async def test_half_a_body_is_answered_with_408_in_time(said: bytes) -> None:
    assert (await _answer(said, waits=AT_ONCE)).startswith(LATE)


async def test_a_connection_that_says_nothing_is_closed_without_a_word() -> None:
    assert await _answer(waits=AT_ONCE) == b""


async def test_half_a_body_of_what_is_answered_already_ends_the_connection() -> None:
    said = b"POST /stream HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nabc"
    answer = await _answer(said, waits=AT_ONCE)
    assert b"begun" in answer
    assert LATE not in answer


async def test_half_a_head_behind_a_request_that_runs_does_not_end_it() -> None:
    async with site(AT_ONCE) as there:
        await there.say(b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n", b"GET /slow HT")
        loop, waited = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(AT_ONCE.body_s * 4, waited.set)
        await waited.wait()
        there.release.set()
        answer = await there.reader.read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert LATE in answer.partition(b"at last")[2]
