"""Qdrant's local mode, a Qdrant that goes away, and discovery with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException
from typing_extensions import override

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_index_work import PostgresIndexWork
from pml_registry.adapters.postgres_models import PostgresEmbeddingModels
from pml_registry.adapters.qdrant import QdrantIndex
from pml_registry.application.embedding import EmbeddingUpkeep
from pml_registry.application.indexing import IndexUpkeep
from pml_registry.application.serving import ServingModel
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.parts.search import Search, external_search
from pml_registry.ports.vectors import Embedded, Embedder, EmbedderUnavailable, EmbeddingModel
from services.registry.tests.support.builders import SCOPE
from services.registry.tests.support.stores import Stores, stores_on

HASH_MODEL = EmbeddingModel("hash", 384)


def local_client(folder: Path | None = None) -> AsyncQdrantClient:
    """A client whose server is this process; without a folder, in memory."""
    return AsyncQdrantClient(":memory:") if folder is None else AsyncQdrantClient(path=str(folder))


class Switchable:
    """A client whose server can be away: then each request fails as one to a closed port does."""

    def __init__(self, client: AsyncQdrantClient) -> None:
        self._client = client
        self.is_away = False
        self.refused = 0
        """Requests made while it was away."""

    @property
    def client(self) -> AsyncQdrantClient:
        """This, as what an index takes."""
        return cast(AsyncQdrantClient, self)

    def __getattr__(self, name: str) -> object:
        operation = getattr(self._client, name)

        async def asked(*args: object, **more: object) -> object:
            if self.is_away:
                self.refused += 1
                raise ResponseHandlingException(ConnectionRefusedError("connection refused"))
            return await operation(*args, **more)

        return asked


class Renamed(Embedder):
    """Another embedder's vectors under another name; remembers texts, and can fail."""

    def __init__(self, embedder: Embedder, name: str, *, fails_after: int | None = None) -> None:
        self._embedder, self._name = embedder, name
        self.texts: list[str] = []
        self.fails_after = fails_after

    @override
    async def model(self) -> str:
        return self._name

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        if self.fails_after is not None and len(self.texts) + len(texts) > self.fails_after:
            raise EmbedderUnavailable(f"{self._name} is away")
        self.texts += texts
        return Embedded(self._name, (await self._embedder.embed(texts)).vectors)


@dataclass(frozen=True)
class QdrantSearch:
    """Discovery on Postgres and a local Qdrant, put together as the registry does."""

    stores: Stores
    search: Search
    serving: ServingModel
    work: PostgresIndexWork
    index: QdrantIndex
    upkeep: IndexUpkeep

    async def discover(self, intent: str, **more: object) -> DiscoveryPage:
        """Ask, with what is stored about models now."""
        self.serving.refresh()
        query = Discover.model_validate({"scope": SCOPE, "intent": intent, **more})
        return await on_discover(query, self.serving, self.search.index, self.stores.candidates)


async def qdrant_search(
    pools: ScopedPools, embedder: Embedder, client: AsyncQdrantClient, *, batch: int = 128
) -> QdrantSearch:
    """Follow what is stored from now on."""
    models = PostgresEmbeddingModels(pools.batch)

    async def wanted() -> EmbeddingModel:
        return HASH_MODEL

    serving = ServingModel(models, lambda _: embedder)
    index, work = QdrantIndex(client, timeout_s=20.0), PostgresIndexWork(pools.batch)
    embedding = EmbeddingUpkeep(models, lambda _: embedder, wanted, index)
    indexes = index, index
    search = await external_search(
        work, embedding, models, serving, indexes, {}, timeout_s=PATIENCE_S
    )
    upkeep = IndexUpkeep(work, index, batch)
    return QdrantSearch(stores_on(pools), search, serving, work, index, upkeep)
