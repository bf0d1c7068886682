"""A local HTTP server for JSON, one request a connection."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress

from pydantic import JsonValue

Handler = Callable[[str, JsonValue], Awaitable[tuple[str, bytes]]]
"""Status and body for the head and the body of a request."""


@asynccontextmanager
async def json_server(handle: Handler) -> AsyncGenerator[str]:
    """Serve until the context exits; yield the URL up to `v1/`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that gives up may have sent nothing yet, or has gone.
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = head.lower().partition("content-length: ")[2].split("\r\n")[0]
            asked = json.loads(await reader.readexactly(int(length)))
            status, body = await handle(head, asked)
            sizes = f"Content-Length: {len(body)}\r\nConnection: close"
            writer.write(f"HTTP/1.1 {status}\r\n{sizes}\r\n\r\n".encode() + body)
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/"
