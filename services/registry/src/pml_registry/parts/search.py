"""Search by meaning, by the settings: the embedders, and the index in Postgres or in Qdrant."""

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from pml_common.background import run_periodically
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.health import Checks, Detail
from pml_common.storage.errors import map_unavailable
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.embedders import Embedders, Endpoint
from pml_registry.adapters.guarded import Guard, GuardedSearch
from pml_registry.adapters.minilm import MiniLmEmbedder
from pml_registry.adapters.postgres_index_work import PostgresIndexWork
from pml_registry.adapters.postgres_models import PostgresEmbeddingModels
from pml_registry.adapters.postgres_vectors import PgvectorIndex
from pml_registry.application.embedding import EmbeddingUpkeep
from pml_registry.application.evidence import Evidence
from pml_registry.application.indexing import IndexUpkeep
from pml_registry.application.serving import ServingModel
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_index import on_reindex, on_show_index
from pml_registry.entrypoints.bus.with_dependencies import discover_related
from pml_registry.ports import CandidateStore
from pml_registry.ports.graph import DependencyStore
from pml_registry.ports.vectors import (
    Embedder,
    EmbedderUnavailable,
    EmbeddingModel,
    EmbeddingModels,
    IndexUnavailable,
    IndexWork,
    VectorIndex,
    VectorSearch,
)
from pml_registry.settings import RegistrySettings

log = logging.getLogger(__name__)

_UPKEEP_S = 15.0
"""Seconds between two looks for missing vectors."""

_IN_USE_S = 600.0
"""Seconds between two remarks that Qdrant is in use."""

_ABANDONED_AFTER_S = 86_400.0
"""Seconds without such a remark after which no changes are noted for it any more."""

_UPDATE_FACTOR = 10.0
"""An update of the index carries a batch, and nobody waits for it."""


@dataclass(frozen=True)
class Search:
    """Embeds and searches; `work` is there if the index is outside of Postgres."""

    embedder: Embedder
    index: VectorSearch
    models: EmbeddingModels
    work: IndexWork | None
    checks: Checks
    upkeep: Sequence[Callable[[], Coroutine[object, object, None]]]


@asynccontextmanager
async def search_of(settings: RegistrySettings, pools: ScopedPools) -> AsyncGenerator[Search]:
    """Open what the settings say, until the context exits; `upkeep` is to be run meanwhile. Raises
    StorageUnavailable."""
    local = EmbeddingModel(MiniLmEmbedder.model_name, MiniLmEmbedder.dimension)
    async with AsyncExitStack() as stack:
        embedders = await stack.enter_async_context(
            aclosing(Embedders(local, MiniLmEmbedder.load, _endpoint(settings)))
        )
        models = PostgresEmbeddingModels(pools.batch)
        serving = ServingModel(models, embedders.prompt)
        wanted = partial(embedders.described, settings.registry_embedding_model)
        checks: Checks = {"embeddings": embedders.check}
        if settings.registry_vector_index == "postgres" or settings.registry_qdrant_url is None:
            upkeep = EmbeddingUpkeep(models, embedders.patient, wanted)
            await _begin(upkeep)
            abandon = partial(PostgresIndexWork(pools.batch).abandon, _ABANDONED_AFTER_S)
            works = [
                partial(run_periodically, upkeep.keep_up, _UPKEEP_S, first_after_s=_UPKEEP_S),
                partial(run_periodically, abandon, _IN_USE_S, first_after_s=_IN_USE_S),
            ]
            yield Search(serving, PgvectorIndex(pools), models, None, checks, works)
            return
        # Its import costs a second, and laptops have no Qdrant.
        from pml_registry.adapters.qdrant import QdrantIndex

        timeout_s, key = settings.registry_index_timeout_s, settings.registry_qdrant_api_key
        connect = partial(
            QdrantIndex.at,
            settings.registry_qdrant_url,
            None if key is None else key.get_secret_value(),
        )
        asked = await stack.enter_async_context(aclosing(connect(timeout_s=timeout_s)))
        updated = await stack.enter_async_context(
            aclosing(connect(timeout_s=_UPDATE_FACTOR * timeout_s))
        )
        yield await external_search(
            PostgresIndexWork(pools.batch),
            EmbeddingUpkeep(models, embedders.patient, wanted, updated),
            models,
            serving,
            (asked, updated),
            checks,
            timeout_s=timeout_s,
        )


async def external_search(
    work: IndexWork,
    upkeep: EmbeddingUpkeep,
    models: EmbeddingModels,
    serving: ServingModel,
    indexes: tuple[VectorSearch, VectorIndex],
    checks: Checks,
    *,
    timeout_s: float,
) -> Search:
    """Search an index outside of Postgres, that is told what changes: `indexes` are the one that is
    searched and the one that is updated. Raises StorageUnavailable."""
    asked, updated = indexes
    guard = Guard("the vector index", timeout_s, IndexUnavailable)

    async def index_check() -> str | None:
        # Discovery goes on, so the registry is healthy.
        problem = await guard.check()
        return None if problem is None else Detail(f"{problem}: discovery by words alone")

    await _begin(upkeep)
    await work.follow()
    return Search(
        serving,
        GuardedSearch(asked, guard, serving.is_indexed),
        models,
        work,
        {**checks, "vector index": index_check},
        [
            partial(run_periodically, upkeep.keep_up, _UPKEEP_S, first_after_s=_UPKEEP_S),
            partial(run_periodically, work.follow, _IN_USE_S, first_after_s=_IN_USE_S),
            IndexUpkeep(work, updated).run,
        ],
    )


async def serve_search(
    bus: Bus,
    search: Search,
    candidates: CandidateStore,
    dependencies: DependencyStore,
    evidence: Evidence,
) -> None:
    """Serve discovery, and the queries of operators."""
    unavailable = partial(QueryFailed, "unavailable")
    discover = partial(
        on_discover,
        embedder=search.embedder,
        index=search.index,
        candidates=candidates,
        evidence=evidence,
    )
    discover_needs = partial(discover_related, discover=discover, dependencies=dependencies)
    await bus.serve(catalog.DISCOVER, map_unavailable(discover_needs, unavailable))
    show = partial(on_show_index, models=search.models, work=search.work)
    await bus.serve(catalog.SHOW_INDEX, map_unavailable(show, unavailable))
    reindex = partial(on_reindex, models=search.models, work=search.work)
    await bus.serve(catalog.REINDEX, map_unavailable(reindex, unavailable))


async def _begin(upkeep: EmbeddingUpkeep) -> None:
    """Begin the model at once, if that needs no endpoint that is away."""
    try:
        await upkeep.begin()
    except EmbedderUnavailable as outage:
        log.warning("the embedding model is begun later: %s", outage)


def _endpoint(settings: RegistrySettings) -> Endpoint | None:
    if settings.registry_embedding_url is None:
        return None
    key = settings.registry_embedding_api_key
    return Endpoint(
        settings.registry_embedding_url,
        None if key is None else key.get_secret_value(),
        settings.registry_embedding_batch,
        settings.registry_embedding_timeout_s,
        settings.registry_embedding_retries,
        settings.registry_embedding_wait_s,
    )
