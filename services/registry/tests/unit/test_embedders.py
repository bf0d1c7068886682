"""Contract of every embedder, and the background embedder."""

import asyncio
import math
import threading
from collections.abc import AsyncGenerator
from typing import ClassVar

import pytest
from typing_extensions import override

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.adapters.minilm import MiniLmEmbedder
from pml_registry.ports.vectors import Embedder, EmbedderUnavailable, Vector
from services.registry.tests.support.hash_embedder import HashEmbedder

TEXTS = ["Read the contents of a file", "", "🦆 \ud800 \x00", "word " * 3000]


LOADS = [(HashEmbedder.model_name, HashEmbedder), (MiniLmEmbedder.model_name, MiniLmEmbedder.load)]


@pytest.fixture(params=LOADS, ids=["hash", "minilm"])
async def any_embedder(request: pytest.FixtureRequest) -> AsyncGenerator[Embedder]:
    """Each model."""
    background = BackgroundEmbedder(*request.param)
    yield background
    await background.aclose()


def _cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_every_text_gets_a_unit_vector_of_the_models_dimension(
    any_embedder: Embedder,
) -> None:
    embedded = await any_embedder.embed(TEXTS)
    assert embedded.model == await any_embedder.model()
    assert [len(vector) for vector in embedded.vectors] == [384] * len(TEXTS)
    for vector in embedded.vectors:
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)


async def test_no_texts_get_no_vectors(any_embedder: Embedder) -> None:
    assert list((await any_embedder.embed([])).vectors) == []


async def test_the_same_text_gets_the_same_vector_in_any_company(any_embedder: Embedder) -> None:
    alone = await any_embedder.embed(["list the tables"])
    among = await any_embedder.embed([*TEXTS, *TEXTS, *TEXTS, "list the tables"])
    assert _cosine(alone.vectors[0], among.vectors[-1]) == pytest.approx(1.0, abs=1e-5)


async def test_texts_that_share_much_are_nearer_than_texts_that_share_nothing(
    any_embedder: Embedder,
) -> None:
    wanted, near, far = (
        await any_embedder.embed(
            ["read a text file", "read a file of text", "forecast tomorrow's weather"]
        )
    ).vectors
    assert _cosine(wanted, near) > _cosine(wanted, far)


class Halting(HashEmbedder):
    """Loads only once released."""

    released: ClassVar[threading.Event] = threading.Event()

    def __init__(self) -> None:
        assert self.released.wait(5)


class Broken(HashEmbedder):
    """Fails to load."""

    def __init__(self) -> None:
        raise OSError("no such weights")


async def test_a_loading_model_is_awaited_and_healthy() -> None:
    background = BackgroundEmbedder("hash", Halting)
    embedding = asyncio.create_task(background.embed(["text"]))
    await asyncio.sleep(0)
    assert await background.check() is None
    Halting.released.set()
    assert (await embedding).model == "hash"
    assert await background.check() is None
    await background.aclose()


async def test_a_model_is_not_loaded_before_a_text_is_embedded() -> None:
    loads = 0

    def load() -> HashEmbedder:
        nonlocal loads
        loads += 1
        return HashEmbedder()

    background = BackgroundEmbedder("hash", load)
    assert await background.model() == "hash"
    assert list((await background.embed([])).vectors) == []
    assert await background.check() is None
    assert loads == 0
    await asyncio.gather(*(background.embed(["text"]) for _ in range(3)))
    assert loads == 1
    await background.aclose()


class Resting(HashEmbedder):
    """Says when it rests."""

    def __init__(self) -> None:
        self.rested = asyncio.Event()

    @override
    def rest(self) -> None:
        self.rested.set()


async def test_a_model_rests_after_the_last_text_and_embeds_again() -> None:
    model = Resting()
    background = BackgroundEmbedder("hash", lambda: model, idle_s=0.0)
    for _ in range(2):
        model.rested.clear()
        assert len((await background.embed(["text"])).vectors) == 1
        async with asyncio.timeout(PATIENCE_S):
            await model.rested.wait()
    await background.aclose()


async def test_a_closed_models_rest_is_cancelled() -> None:
    model = Resting()
    background = BackgroundEmbedder("hash", lambda: model, idle_s=0.0)
    await background.embed(["text"])
    await background.aclose()
    await asyncio.sleep(0)
    assert not model.rested.is_set()


async def test_an_unusable_model_is_reported_by_calls_and_by_health() -> None:
    background = BackgroundEmbedder("hash", Broken)
    for _ in range(2):
        with pytest.raises(EmbedderUnavailable, match="cannot be used: no such weights"):
            await background.embed(["text"])
    assert "no such weights" in (await background.check() or "")
    await background.aclose()


async def test_closing_cancels_a_model_that_is_still_loading() -> None:
    Halting.released.clear()
    background = BackgroundEmbedder("hash", Halting)
    embedding = asyncio.create_task(background.embed(["text"]))
    await asyncio.sleep(0)
    await background.aclose()
    Halting.released.set()
    assert await background.check() is None
    with pytest.raises(asyncio.CancelledError):
        await embedding
