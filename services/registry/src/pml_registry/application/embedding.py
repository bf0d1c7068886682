"""Vectors that are missing, and the change of the embedding model, in the background."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from pml_registry.ports.vectors import (
    Embedder,
    EmbedderUnavailable,
    EmbeddingModel,
    EmbeddingModels,
    IndexUnavailable,
    PointKey,
    VectorIndex,
)

log = logging.getLogger(__name__)

_BATCH: Final = 64

DROPPED_AFTER_S: Final = 60.0
"""Seconds for which the vectors of a former model are kept: other processes still use it."""


class EmbeddingUpkeep:
    """Embeds what has no vector, a batch at a time, each of which is stored at once: after a kill
    the rest goes on. `external`: the index that has to have had a model's vectors before it
    serves."""

    def __init__(
        self,
        models: EmbeddingModels,
        embedder_of: Callable[[str], Embedder],
        wanted: Callable[[], Awaitable[EmbeddingModel]],
        external: VectorIndex | None = None,
        *,
        dropped_after_s: float = DROPPED_AFTER_S,
    ) -> None:
        """`wanted` is the model of the settings; it is begun once, so that of several processes
        with different settings the one that started last decides."""
        self._models = models
        self._embedder_of = embedder_of
        self._wanted = wanted
        self._external = external
        self._dropped_after_s = dropped_after_s
        self._begun = False

    async def keep_up(self) -> None:
        """Embed what is missing; let a model serve that is complete; drop former ones. What an
        embedder or index that is away prevents is done by a later call. Raises
        StorageUnavailable."""
        try:
            await self.begin()
        except EmbedderUnavailable as outage:
            log.warning("the embedding model is begun later: %s", outage)
        for each in await self._models.all():
            try:
                if each.state != "retired":
                    await self._complete(each.model.name)
                elif each.for_s >= self._dropped_after_s:
                    await self._drop(each.model.name)
            except (EmbedderUnavailable, IndexUnavailable) as outage:
                log.warning("embedding model %s goes on later: %s", each.model.name, outage)

    async def begin(self) -> None:
        """Begin the model of the settings. Raises EmbedderUnavailable, StorageUnavailable."""
        if not self._begun:
            await self._models.begin(await self._wanted())
            self._begun = True

    async def _complete(self, model: str) -> None:
        embedder = self._embedder_of(model)
        while missing := await self._embed_missing(model, embedder):
            log.info("embedding model %s: computed %d missing vectors", model, missing)
        if missing is None:
            return
        if await self._models.serve(model, needs_index=self._external is not None):
            log.info("embedding model %s serves now", model)

    async def _embed_missing(self, model: str, embedder: Embedder) -> int | None:
        """Embed everything that is missing now; return how many that were, and None where another
        process does so."""
        after: PointKey | None = None
        found = 0
        while True:
            async with self._models.turn() as is_ours:
                if not is_ours:
                    return None
                missing = await self._models.unembedded(model, after, _BATCH)
                if not missing:
                    return found
                embedded = await embedder.embed([each.text for each in missing])
                await self._models.fill(model, missing, embedded.vectors)
            after, found = missing[-1].key, found + len(missing)

    async def _drop(self, model: str) -> None:
        if self._external is not None:
            await self._external.drop(model)
        if await self._models.forget(model):
            log.info("embedding model %s is dropped", model)
