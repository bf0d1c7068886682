"""A local server that speaks the protocol of OpenAI's embeddings."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from services.registry.tests.support.json_server import json_server

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

    async def handle(head: str, asked: Any) -> tuple[str, bytes]:
        seen.heads.append(head)
        seen.models.append(asked["model"])
        seen.texts.append(asked["input"])
        return await answer(asked["input"])

    async with json_server(handle) as seen.url:
        yield seen


def embedded(vectors: Sequence[Sequence[float]]) -> bytes:
    """A body with these vectors; the last one first, as the order is not promised."""
    data = [{"index": at, "embedding": list(each)} for at, each in enumerate(vectors)]
    return json.dumps({"object": "list", "data": data[::-1]}).encode()
