"""An embedding model that is loaded in the background and runs in threads."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from pml_registry.ports.vectors import Embedded, Embedder, EmbedderUnavailable, Vector

log = logging.getLogger(__name__)

_BATCH_SIZE = 8


class Model(Protocol):
    """A blocking model; `dimension` is the length of its vectors."""

    model_name: ClassVar[str]
    dimension: ClassVar[int]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors (n, dimension)."""
        ...


class BackgroundEmbedder(Embedder):
    """Embeds a batch texts at a time, so that a query never waits for a whole tool catalog."""

    def __init__(self, load: Callable[[], Model]) -> None:
        self._loading = asyncio.create_task(asyncio.to_thread(load), name="load-embedding-model")
        self._loading.add_done_callback(_log_result)
        self._lock = asyncio.Lock()

    @override
    async def model(self) -> str:
        return (await self._model()).model_name

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        model = await self._model()
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH_SIZE):
            async with self._lock:
                batch = await asyncio.to_thread(model.embed, texts[start : start + _BATCH_SIZE])
            vectors.extend(batch.tolist())
        return Embedded(model.model_name, vectors)

    async def check(self) -> str | None:
        """Check health: a model that is still loading is healthy, one that failed is not."""
        if not self._loading.done() or self._loading.cancelled():
            return None
        failure = self._loading.exception()
        return None if failure is None else f"the embedding model cannot be used: {failure}"

    async def aclose(self) -> None:
        """Cancel loading."""
        self._loading.cancel()
        await asyncio.gather(self._loading, return_exceptions=True)

    async def _model(self) -> Model:
        """Wait until the model is loaded. Raises EmbedderUnavailable."""
        try:
            return await asyncio.shield(self._loading)
        except Exception as failure:
            raise EmbedderUnavailable(f"the embedding model cannot be used: {failure}") from failure


def _log_result(loading: asyncio.Task[Model]) -> None:
    if loading.cancelled():
        return
    failure = loading.exception()
    if failure is None:
        log.info("embedding model %s is loaded", loading.result().model_name)
    else:
        log.error("the embedding model cannot be used", exc_info=failure)
