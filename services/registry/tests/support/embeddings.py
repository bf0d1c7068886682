"""A local server that speaks the protocol of OpenAI's embeddings."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = Callable[[Sequence[str]], Awaitable[tuple[str, bytes]]]
"""Status and body for the texts of a request."""


@dataclass
class Embeddings:
    """The server's URL, heads of requests, and their texts."""

    url: str = ""
    heads: list[str] = field(default_factory=list[str])
    models: list[str] = field(default_factory=list[str])
    texts: list[Sequence[str]] = field(default_factory=list[Sequence[str]])


@asynccontextmanager
async def embeddings(answer: Answer) -> AsyncGenerator[Embeddings]:
    """Serve `POST /v1/embeddings` until the context exits."""
    seen = Embeddings()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = head.lower().partition("content-length: ")[2].split("\r\n")[0]
        asked = json.loads(await reader.readexactly(int(length)))
        seen.heads.append(head)
        seen.models.append(asked["model"])
        seen.texts.append(asked["input"])
        status, body = await answer(asked["input"])
        sizes = f"Content-Length: {len(body)}\r\nConnection: close"
        writer.write(f"HTTP/1.1 {status}\r\n{sizes}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        seen.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/"
        yield seen


def embedded(vectors: Sequence[Sequence[float]]) -> bytes:
    """A body with these vectors; the last one first, as the order is not promised."""
    data = [{"index": at, "embedding": list(each)} for at, each in enumerate(vectors)]
    return json.dumps({"object": "list", "data": data[::-1]}).encode()
