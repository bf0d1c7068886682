"""Handles `discover`."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_registry.domain.intents import Part, parts_of
from pml_registry.domain.offers import offered
from pml_registry.domain.ranking import Candidate, Kind, rank
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import CandidateStore
from pml_registry.ports.vectors import (
    Embedded,
    Embedder,
    EmbedderUnavailable,
    IndexUnavailable,
    Near,
    VectorSearch,
)

log = logging.getLogger(__name__)


async def on_discover(
    query: Discover, embedder: Embedder, index: VectorSearch, candidates: CandidateStore
) -> DiscoveryPage:
    """Rank tools and listed capabilities that the principal sees together; `total` counts the
    candidates that reach the minimum score and that the policy does not deny. Where the embedder or
    the index is away, candidates are found by words alone, and the page is degraded."""
    search = _Search(query, parts_of(query.intent), index, candidates)
    embedded = await _embedded(search.parts, embedder)
    by_kind = await asyncio.gather(*(search.of_kind(kind, embedded) for kind in _kinds(query)))
    ranked = rank(search.parts, [each for found, _ in by_kind for each in found], query.min_score)
    if query.policy is not None and query.policy.can_deny:
        subjects = await candidates.subjects(query.scope, ranked)
        ranked = offered(ranked, query.policy, subjects)
    page = ranked[query.offset : query.offset + query.limit]
    hits = await candidates.hits(search.viewer, page)
    degraded = any(is_degraded for _, is_degraded in by_kind)
    return DiscoveryPage(hits=tuple(hits), total=len(ranked), degraded=degraded)


@dataclass(frozen=True)
class _Search:
    query: Discover
    parts: Sequence[Part]
    index: VectorSearch
    candidates: CandidateStore

    @property
    def viewer(self) -> Viewer:
        return Viewer(self.query.scope, self.query.principal)

    async def of_kind(
        self, kind: Kind, embedded: Embedded | None
    ) -> tuple[Sequence[Candidate], bool]:
        """Return the candidates, and whether they are found by words alone."""
        near = None if embedded is None else await self._near(kind, embedded)
        found = await self.candidates.candidates(
            self.viewer, kind, self.parts, embedded, near or ()
        )
        return found, near is None

    async def _near(self, kind: Kind, embedded: Embedded) -> Sequence[Near] | None:
        """Return the nearest by meaning, each once; None where the index is away."""
        near: dict[str, Near] = {}
        try:
            for part, vector in zip(self.parts, embedded.vectors, strict=True):
                found = await self.index.nearest(
                    self.query.scope, kind, embedded.model, vector, part.limit
                )
                near |= {each.id: each for each in found}
        except IndexUnavailable as outage:
            log.debug("searching by words alone: %s", outage)
            return None
        return list(near.values())


async def _embedded(parts: Sequence[Part], embedder: Embedder) -> Embedded | None:
    try:
        return await embedder.embed([part.text for part in parts])
    except EmbedderUnavailable as outage:
        log.debug("searching by words alone: %s", outage)
        return None


def _kinds(query: Discover) -> Sequence[Kind]:
    return ("tool", "capability") if query.type == "all" else (query.type,)
