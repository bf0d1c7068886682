"""What may serve this intent?"""

from collections.abc import Sequence

from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_registry.domain.ranking import Candidate, Kind, rank
from pml_registry.ports import Embedder, Evidence, VectorIndex

CONSIDERED = 100
"""How many of each kind are considered by meaning, and again by words."""


async def on_discover(
    query: Discover, embedder: Embedder, index: VectorIndex, evidence: Evidence
) -> DiscoveryPage:
    """Rank tools and listed capabilities together; `total` counts what was considered and
    reaches the floor."""
    embedded = await embedder.embed([query.intent])
    candidates: list[Candidate] = []
    for kind in _kinds(query):
        near = await index.nearest(
            query.scope, kind, embedded.model, embedded.vectors[0], CONSIDERED
        )
        candidates += await evidence.weigh(
            query.scope, kind, query.intent, embedded, near, CONSIDERED
        )
    ranked = rank(candidates, query.min_score)
    hits = await evidence.hits(query.scope, ranked[query.offset : query.offset + query.limit])
    return DiscoveryPage(hits=tuple(hits), total=len(ranked))


def _kinds(query: Discover) -> Sequence[Kind]:
    return ("tool", "capability") if query.type == "all" else (query.type,)
