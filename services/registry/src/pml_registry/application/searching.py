"""The search behind a discovery: candidates by meaning, by words and by use, and their ranking."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pml_common.contracts.registry import Discover
from pml_registry.domain.intents import Part
from pml_registry.domain.ranking import Candidate, Kind, Ranked, Target, rank
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

EMBED_WITHIN_S: Final = 4.0
"""Less than a query waits: the local model may be loading, or busy with the tools of a server."""


@dataclass(frozen=True)
class Search:
    """One discovery; `parts` begins with the whole intent. The nearest by meaning are looked for
    once, also for several rankings."""

    query: Discover
    parts: Sequence[Part]
    index: VectorSearch
    candidates: CandidateStore
    found: dict[Kind, Sequence[Near] | None] = field(
        default_factory=dict[Kind, Sequence[Near] | None]
    )

    @property
    def viewer(self) -> Viewer:
        """The principal in its scope."""
        return Viewer(self.query.scope, self.query.principal)

    async def embedded(self, embedder: Embedder) -> Embedded | None:
        """Embed the parts; None where the embedder is away, or does not answer in time."""
        try:
            async with asyncio.timeout(EMBED_WITHIN_S):
                return await embedder.embed([part.text for part in self.parts])
        except (EmbedderUnavailable, TimeoutError) as outage:
            log.debug("searching by words alone: %r", outage)
            return None

    async def ranked(
        self, embedded: Embedded | None, support: Mapping[Target, float]
    ) -> tuple[Sequence[Ranked], bool]:
        """Return what reaches the minimum score, best first, and whether some is found by words
        alone. What `support` has is considered, too."""

        async def of_kind(kind: Kind) -> tuple[Sequence[Candidate], bool]:
            if kind not in self.found:
                self.found[kind] = None if embedded is None else await self._near(kind, embedded)
            near = self.found[kind]
            supported = [target.id for target in support if target.kind == kind]
            found = await self.candidates.candidates(
                self.viewer, kind, self.parts, embedded, near or (), supported
            )
            return found, near is None

        by_kind = await asyncio.gather(*map(of_kind, _kinds(self.query)))
        found = [each for candidates, _ in by_kind for each in candidates]
        ranked = rank(self.parts, found, self.query.min_score, support)
        return ranked, any(degraded for _, degraded in by_kind)

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


def _kinds(query: Discover) -> Sequence[Kind]:
    return ("tool", "capability") if query.type == "all" else (query.type,)
