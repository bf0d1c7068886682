"""Embeddings by an endpoint: a local server that speaks its protocol."""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager

import pytest

from pml_registry.adapters.embedders import Embedders, Endpoint
from pml_registry.adapters.endpoint_embedder import EndpointEmbedder
from pml_registry.ports.vectors import EmbedderUnavailable, EmbeddingModel
from services.registry.tests.support.embeddings import Embeddings, embedded, embeddings
from services.registry.tests.support.hash_embedder import HashEmbedder

LOCAL = EmbeddingModel("hash", 384)


def lengths(texts: Sequence[str]) -> bytes:
    """Vectors that tell texts apart by their lengths."""
    return embedded([[3.0, 4.0 * len(text)] for text in texts])


async def proper(texts: Sequence[str]) -> tuple[str, bytes]:
    return "200 OK", lengths(texts)


def client(
    seen: Embeddings, *, key: str | None = None, timeout_s: float = 20.0, retries: int = 2
) -> EndpointEmbedder:
    return EndpointEmbedder(seen.url, "small", key, batch=2, timeout_s=timeout_s, retries=retries)


async def test_each_text_gets_its_unit_vector_in_order_and_in_batches() -> None:
    async with embeddings(proper) as seen, aclosing(client(seen, key="secret")) as embedder:
        found = await embedder.embed(["a", "", "ccc"])
        assert (await embedder.embed([])).vectors == []
    assert (found.model, await embedder.model()) == ("small", "small")
    for vector, length in zip(found.vectors, (1, 1, 3), strict=True):
        assert math.hypot(*vector) == pytest.approx(1.0)
        assert vector[1] / vector[0] == pytest.approx(4.0 * length / 3.0)
    assert seen.texts == [["a", " "], ["ccc"]]
    assert seen.models == ["small", "small"]
    assert seen.heads[0].startswith("POST /v1/embeddings ")
    assert "authorization: bearer secret" in seen.heads[0].lower()


async def test_a_busy_endpoint_is_asked_again() -> None:
    statuses = ["503 Service Unavailable", "429 Too Many Requests", "200 OK"]

    async def answer(texts: Sequence[str]) -> tuple[str, bytes]:
        return statuses.pop(0), lengths(texts)

    async with embeddings(answer) as seen, aclosing(client(seen)) as embedder:
        assert len((await embedder.embed(["a"])).vectors) == 1
    assert len(seen.texts) == 3
    assert "authorization" not in seen.heads[0].lower()


BAD = {
    "busy for long": ("503 Service Unavailable", b"{}", "HTTP 503", 3),
    "refused": ("401 Unauthorized", b"{}", "HTTP 401", 1),
    "no JSON": ("200 OK", b"<html>", "no list of embeddings", 1),
    "too few": ("200 OK", embedded([]), "0 embeddings of 1 texts", 1),
    "too many": ("200 OK", embedded([[1.0], [1.0]]), "2 embeddings of 1 texts", 1),
    "zero": ("200 OK", embedded([[0.0, 0.0]]), "not finite, or zero", 1),
    "infinite": ("200 OK", embedded([[1e39, 0.0]]), "not finite, or zero", 1),
}


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(("status", "body", "reason", "requests"), BAD.values(), ids=BAD)
async def test_what_is_no_answer_is_an_outage(
    status: str, body: bytes, reason: str, requests: int
) -> None:
    async def answer(_: Sequence[str]) -> tuple[str, bytes]:
        return status, body

    async with embeddings(answer) as seen, aclosing(client(seen)) as embedder:
        with pytest.raises(EmbedderUnavailable, match=reason):
            await embedder.embed(["a"])
    assert len(seen.texts) == requests


async def test_a_model_has_one_dimension() -> None:
    sizes = [2, 3]

    async def answer(_: Sequence[str]) -> tuple[str, bytes]:
        return "200 OK", embedded([[1.0] * sizes.pop(0)])

    async with embeddings(answer) as seen, aclosing(client(seen)) as embedder:
        await embedder.embed(["a"])
        with pytest.raises(EmbedderUnavailable, match="do not all have 2 numbers"):
            await embedder.embed(["a"])


async def test_nobody_waits_for_an_endpoint_that_does_not_answer() -> None:
    released = asyncio.Event()

    async def answer(_: Sequence[str]) -> tuple[str, bytes]:
        await released.wait()
        return "200 OK", b""

    async with embeddings(answer) as seen:
        hasty = client(seen, timeout_s=0.05, retries=0)  # waits: it is over
        async with aclosing(hasty) as embedder:
            with pytest.raises(EmbedderUnavailable, match=r"no answer within 0\.05 s"):
                await embedder.embed(["a"])
        released.set()


async def test_an_endpoint_that_is_away_is_an_outage() -> None:
    async with embeddings(proper) as seen:
        pass
    async with aclosing(client(seen, retries=0)) as embedder:
        with pytest.raises(EmbedderUnavailable, match="model small"):
            await embedder.embed(["a"])


@asynccontextmanager
async def chosen(url: str | None) -> AsyncGenerator[Embedders]:
    endpoint = None if url is None else Endpoint(url, None, 2, 20.0, 0, 20.0)
    async with aclosing(Embedders(LOCAL, HashEmbedder, endpoint)) as embedders:
        yield embedders


async def test_a_model_is_embedded_locally_or_by_the_endpoint() -> None:
    async with embeddings(proper) as seen, chosen(seen.url) as embedders:
        assert await embedders.described("hash") == LOCAL
        assert await embedders.described("small") == EmbeddingModel("small", 2)
        assert (await embedders.prompt("hash").embed(["a"])).model == "hash"
        assert (await embedders.prompt("small").embed(["a"])).model == "small"
        assert embedders.prompt("small") is embedders.prompt("small")
        assert await embedders.check() is None


async def test_health_tells_which_embedder_is_away() -> None:
    async with embeddings(proper) as seen:
        pass
    async with chosen(seen.url) as embedders:
        for _ in range(2):
            with pytest.raises(EmbedderUnavailable):
                await embedders.prompt("small").embed(["a"])
        assert await embedders.check() == "the embedding endpoint does not answer"


async def test_without_an_endpoint_there_is_the_local_model_alone() -> None:
    async with chosen(None) as embedders:
        assert embedders.prompt("hash") is embedders.patient("hash")
        with pytest.raises(EmbedderUnavailable, match="set PML_REGISTRY_EMBEDDING_URL"):
            embedders.prompt("small")
