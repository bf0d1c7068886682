"""An embedding model that is loaded when the first text is embedded, and runs in threads."""

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
_IDLE_S = 60.0


class Model(Protocol):
    """A blocking model; `dimension` is the length of its vectors."""

    model_name: ClassVar[str]
    dimension: ClassVar[int]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors (n, dimension)."""
        ...

    def rest(self) -> None:
        """Free the memory that only embedding needs; the next text allocates it again."""
        ...


class BackgroundEmbedder(Embedder):
    """Embeds a batch of texts at a time, so that a query never waits for a whole tool catalog. The
    model rests after `idle_s` seconds without a text."""

    def __init__(self, name: str, load: Callable[[], Model], idle_s: float = _IDLE_S) -> None:
        self._name, self._load, self._idle_s = name, load, idle_s
        self._idle: asyncio.TimerHandle | None = None
        self._loading: asyncio.Task[Model] | None = None
        self._lock = asyncio.Lock()

    @override
    async def model(self) -> str:
        return self._name

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        if not texts:
            return Embedded(self._name, ())
        model = await self._model()
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH_SIZE):
            async with self._lock:
                batch = await asyncio.to_thread(model.embed, texts[start : start + _BATCH_SIZE])
            vectors.extend(batch.tolist())
        self._rest_later(model)
        return Embedded(self._name, vectors)

    async def check(self) -> str | None:
        """Check health: a model that is not loaded yet is healthy, one that failed is not."""
        if self._loading is None or not self._loading.done() or self._loading.cancelled():
            return None
        failure = self._loading.exception()
        return None if failure is None else f"the embedding model cannot be used: {failure}"

    async def aclose(self) -> None:
        """Cancel loading."""
        if self._idle is not None:
            self._idle.cancel()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    def _rest_later(self, model: Model) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(self._idle_s, model.rest)

    async def _model(self) -> Model:
        """Load the model, once. Raises EmbedderUnavailable."""
        if self._loading is None:
            loading = asyncio.to_thread(self._load)
            self._loading = asyncio.create_task(loading, name="load-embedding-model")
            self._loading.add_done_callback(_log_result)
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
