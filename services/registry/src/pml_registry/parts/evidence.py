"""Learning from use, for rankings."""

from functools import partial

from pml_common.background import run_periodically
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.storage.errors import map_unavailable
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_evidence import PostgresEvidenceStore
from pml_registry.application.evidence import Evidence
from pml_registry.application.learning_uses import UseLearning
from pml_registry.entrypoints.bus.on_show_evidence import on_show_evidence
from pml_registry.entrypoints.bus.on_uses_observed import (
    on_use_judged,
    on_uses_observed,
    on_workflow_data_deleted,
)
from pml_registry.parts.search import Search
from pml_registry.ports import CandidateStore

_EMBED_S = 15.0
"""Seconds between two looks for intents that are embedded with a former model."""


def use_learning(pools: ScopedPools, search: Search, candidates: CandidateStore) -> UseLearning:
    """Learn from use, for rankings by this search."""
    store = PostgresEvidenceStore(pools)
    return UseLearning(store, Evidence(store), search.embedder, search.index, candidates)


async def serve_evidence(bus: Bus, learning: UseLearning) -> None:
    """Learn from the uses that the learner observes, and tell what came of it."""
    show = partial(on_show_evidence, evidence=learning.store)
    unavailable = partial(QueryFailed, "unavailable")
    await bus.serve(catalog.SHOW_EVIDENCE, map_unavailable(show, unavailable))
    await bus.consume(
        catalog.REGISTRY_ON_USES_OBSERVED, partial(on_uses_observed, learning=learning)
    )
    await bus.consume(
        catalog.REGISTRY_ON_USE_JUDGED, partial(on_use_judged, evidence=learning.store)
    )
    await bus.consume(
        catalog.REGISTRY_ON_WORKFLOW_DATA_DELETED,
        partial(on_workflow_data_deleted, evidence=learning.store),
    )


async def keep_embedded(learning: UseLearning) -> None:
    """Embed intents anew after a change of the model."""
    await run_periodically(learning.keep_embedded, _EMBED_S, first_after_s=_EMBED_S)
