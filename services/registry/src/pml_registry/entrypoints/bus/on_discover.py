"""Handles `discover`."""

from collections.abc import Sequence

from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_registry.domain.intents import parts_of
from pml_registry.domain.offers import offered
from pml_registry.domain.ranking import Candidate, Kind, rank
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import CandidateStore, Embedder, VectorIndex


async def on_discover(
    query: Discover, embedder: Embedder, index: VectorIndex, candidates: CandidateStore
) -> DiscoveryPage:
    """Rank tools and listed capabilities that the principal sees together; `total` counts the
    candidates that reach the minimum score and that the policy does not deny."""
    parts, viewer = parts_of(query.intent), Viewer(query.scope, query.principal)
    embedded = await embedder.embed([part.text for part in parts])
    found: list[Candidate] = []
    for kind in _kinds(query):
        near: dict[str, None] = {}
        for part, vector in zip(parts, embedded.vectors, strict=True):
            near |= dict.fromkeys(
                await index.nearest(query.scope, kind, embedded.model, vector, part.limit)
            )
        found += await candidates.candidates(viewer, kind, parts, embedded, list(near))
    ranked = rank(parts, found, query.min_score)
    if query.policy is not None and query.policy.can_deny:
        subjects = await candidates.subjects(query.scope, ranked)
        ranked = offered(ranked, query.policy, subjects)
    hits = await candidates.hits(viewer, ranked[query.offset : query.offset + query.limit])
    return DiscoveryPage(hits=tuple(hits), total=len(ranked))


def _kinds(query: Discover) -> Sequence[Kind]:
    return ("tool", "capability") if query.type == "all" else (query.type,)
