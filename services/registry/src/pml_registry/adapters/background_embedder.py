"""An embedding model behind the event loop: loaded in the background, run in threads."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pml_registry.ports import Embedded, Vector

log = logging.getLogger(__name__)

DIMENSION = 384
"""Of the vectors in the schema."""

_AT_ONCE = 8


class Model(Protocol):
    """A model that computes where it is called; `dimension` is the length of its vectors."""

    model_name: ClassVar[str]
    dimension: ClassVar[int]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, dimension)."""
        ...


class BackgroundEmbedder:
    """See `ports.Embedder`. A few texts at a time, so that a question waits for no catalogue."""

    def __init__(self, load: Callable[[], Model]) -> None:
        self._loading = asyncio.create_task(self._load(load), name="load-embedding-model")
        self._loading.add_done_callback(_tell)
        self._turn = asyncio.Lock()

    async def model(self) -> str:
        """See `ports.Embedder`."""
        return (await asyncio.shield(self._loading)).model_name

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `ports.Embedder`."""
        model = await asyncio.shield(self._loading)
        vectors: list[Vector] = []
        for start in range(0, len(texts), _AT_ONCE):
            async with self._turn:
                few = await asyncio.to_thread(model.embed, texts[start : start + _AT_ONCE])
            vectors.extend(few.tolist())
        return Embedded(model.model_name, vectors)

    async def check(self) -> str | None:
        """A health check: a model that is still loading is fine, one that failed is not."""
        if not self._loading.done() or self._loading.cancelled():
            return None
        failure = self._loading.exception()
        return None if failure is None else f"the embedding model cannot be used: {failure}"

    async def aclose(self) -> None:
        """Give up loading."""
        self._loading.cancel()
        await asyncio.gather(self._loading, return_exceptions=True)

    async def _load(self, load: Callable[[], Model]) -> Model:
        model = await asyncio.to_thread(load)
        if model.dimension != DIMENSION:
            raise ValueError(
                f"{model.model_name} makes vectors of {model.dimension} numbers, "
                f"the schema holds {DIMENSION}: migrate it, or use another model"
            )
        return model


def _tell(loading: asyncio.Task[Model]) -> None:
    if loading.cancelled():
        return
    failure = loading.exception()
    if failure is None:
        log.info("embedding model %s is loaded", loading.result().model_name)
    else:
        log.error("the embedding model cannot be used", exc_info=failure)
