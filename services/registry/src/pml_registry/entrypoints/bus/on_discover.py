"""Handles `discover`."""

import asyncio
from time import monotonic

from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_common.telemetry import metrics
from pml_common.telemetry.instruments import Distribution
from pml_registry.application.evidence import Evidence, Held
from pml_registry.application.searching import Search
from pml_registry.domain.intents import parts_of
from pml_registry.domain.offers import offered
from pml_registry.domain.ranking import NO_EVIDENCE
from pml_registry.ports import CandidateStore
from pml_registry.ports.vectors import Embedder, VectorSearch

_duration = Distribution(metrics.DISCOVERIES)


async def on_discover(
    query: Discover,
    embedder: Embedder,
    index: VectorSearch,
    candidates: CandidateStore,
    evidence: Evidence | None = None,
) -> DiscoveryPage:
    """Rank tools and listed capabilities that the principal sees together, by the evidence of the
    scope where that helps; `total` counts the candidates that reach the minimum score and that the
    policy does not deny. Where the embedder or the index is away, candidates are found by words
    alone, and the page is degraded."""
    began = monotonic()
    search = Search(query, parts_of(query.intent), index, candidates)
    embedded, held = await asyncio.gather(search.embedded(embedder), _used(query, evidence))
    support = NO_EVIDENCE
    if embedded is not None and held is not None:
        support = held.support(embedded)
    ranked, degraded = await search.ranked(embedded, support)
    if query.policy is not None and query.policy.can_deny:
        subjects = await candidates.subjects(query.scope, ranked)
        ranked = offered(ranked, query.policy, subjects)
    page = ranked[query.offset : query.offset + query.limit]
    hits = await candidates.hits(search.viewer, page)
    _duration.record(monotonic() - began, str(degraded).lower())
    return DiscoveryPage(hits=tuple(hits), total=len(ranked), degraded=degraded)


async def _used(query: Discover, evidence: Evidence | None) -> Held | None:
    return None if evidence is None else await evidence.used(query.scope)
