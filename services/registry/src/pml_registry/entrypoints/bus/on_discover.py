"""Handles `discover`."""

from collections.abc import Sequence

from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_registry.domain.ranking import Candidate, Kind, rank
from pml_registry.ports import CandidateStore, Embedder, VectorIndex

MAX_CANDIDATES = 100
"""Candidates of each kind by meaning, and again by words."""


async def on_discover(
    query: Discover, embedder: Embedder, index: VectorIndex, candidates: CandidateStore
) -> DiscoveryPage:
    """Rank tools and listed capabilities together; `total` counts the candidates that reach the
    minimum score."""
    embedded = await embedder.embed([query.intent])
    found: list[Candidate] = []
    for kind in _kinds(query):
        near = await index.nearest(
            query.scope, kind, embedded.model, embedded.vectors[0], MAX_CANDIDATES
        )
        found += await candidates.candidates(
            query.scope, kind, query.intent, embedded, near, MAX_CANDIDATES
        )
    ranked = rank(found, query.min_score)
    hits = await candidates.hits(query.scope, ranked[query.offset : query.offset + query.limit])
    return DiscoveryPage(hits=tuple(hits), total=len(ranked))


def _kinds(query: Discover) -> Sequence[Kind]:
    return ("tool", "capability") if query.type == "all" else (query.type,)
