"""The embedding model that serves."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from typing_extensions import override

from pml_registry.ports.vectors import (
    Embedded,
    Embedder,
    EmbedderUnavailable,
    EmbeddingModels,
    StoredModel,
)

REFRESH_S: Final = 2.0
"""Seconds for which a process keeps using a model that another has replaced."""


class ServingModel(Embedder):
    """Embeds with the model whose vectors are searched. Raises StorageUnavailable, too."""

    def __init__(self, models: EmbeddingModels, embedder_of: Callable[[str], Embedder]) -> None:
        self._models = models
        self._embedder_of = embedder_of
        self._known: Sequence[StoredModel] = ()
        self._fresh_until = 0.0

    @override
    async def model(self) -> str:
        return await (await self._embedder()).model()

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        return await (await self._embedder()).embed(texts)

    async def is_indexed(self, model: str) -> bool:
        """Return whether the external index has had all vectors of the model."""
        return any(each.model.name == model and each.indexed for each in await self._all())

    def refresh(self) -> None:
        """Read again before the next use."""
        self._fresh_until = 0.0

    async def _embedder(self) -> Embedder:
        for each in await self._all():
            if each.state == "serving":
                return self._embedder_of(each.model.name)
        raise EmbedderUnavailable("no embedding model serves yet")

    async def _all(self) -> Sequence[StoredModel]:
        now = asyncio.get_running_loop().time()
        if now >= self._fresh_until:
            self._known = await self._models.all()
            self._fresh_until = now + REFRESH_S
        return self._known
