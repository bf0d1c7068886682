"""Heads of requests, which nobody has checked anything of yet."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from pml_common.health import serve_http
from pml_gateway.handlers.http_heads import MOST_BYTES, BoundedHeads
from pml_local.ports import free_port

pytestmark = pytest.mark.integration

START = b"POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"
REFUSED = b"HTTP/1.1 400 "


async def _length(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{len(await request.body())} bytes")


async def _answer(*said: bytes) -> bytes:
    port, app = free_port(), Starlette(routes=[Route("/", _length, methods=["POST"])])
    async with serve_http(app, "127.0.0.1", port, BoundedHeads), asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for part in said:
                writer.write(part)
                await writer.drain()
            return await reader.read()
        except ConnectionError:  # ended with something of it unread, the answer is lost
            return REFUSED
        finally:
            writer.close()


@pytest.mark.parametrize("more", [b"x", b"A: x\r\n"])
async def test_a_head_that_does_not_end_is_refused(more: bytes) -> None:
    answer = await _answer(START, b"Long: ", (more * MOST_BYTES)[:MOST_BYTES])
    assert answer.startswith(REFUSED)


async def test_what_follows_a_body_and_does_not_end_is_refused() -> None:
    chunked = START + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    answer = await _answer(chunked, b"Long: ", *([b"x" * MOST_BYTES] * 16))
    assert answer.startswith(REFUSED)


async def test_a_long_body_is_no_head() -> None:
    body = b"x" * (8 * MOST_BYTES)
    answer = await _answer(START + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert answer.endswith(b"%d bytes" % len(body))
