"""Handles `show-index` and `reindex`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.search_index import IndexedModel, IndexState, Reindex, ShowIndex
from pml_registry.ports.vectors import EmbeddingModels, IndexWork


async def on_show_index(
    _: ShowIndex, models: EmbeddingModels, work: IndexWork | None
) -> IndexState:
    """Return the state of the vector index; without `work` it is Postgres."""
    return await _state(models, work)


async def on_reindex(query: Reindex, models: EmbeddingModels, work: IndexWork | None) -> IndexState:
    """Begin a rebuild, unless one is under way. Raises QueryFailed where the index is Postgres,
    which needs none."""
    if work is None:
        raise QueryFailed(
            "conflict",
            "vectors are searched in Postgres itself (PML_REGISTRY_VECTOR_INDEX=postgres): "
            "there is no other index to rebuild",
        )
    await work.request_run(query.principal)
    return await _state(models, work)


async def _state(models: EmbeddingModels, work: IndexWork | None) -> IndexState:
    known = tuple(
        IndexedModel(
            name=each.model.name,
            dimension=each.model.dimension,
            state=each.state,
            complete=work is None or each.indexed,
        )
        for each in await models.all()
    )
    if work is None:
        return IndexState(index="postgres", models=known)
    return IndexState(
        index="qdrant",
        pending=await work.pending(),
        models=known,
        reindex=await work.last_run(),
    )
