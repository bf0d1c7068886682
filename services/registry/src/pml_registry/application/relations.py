"""Relations of a newly listed capability to others, by their tools and intents."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_registry.domain.dependencies import (
    Peer,
    Related,
    alternatives,
    may_be_alternative,
    sharing,
)
from pml_registry.ports.graph import DependencyStore
from pml_registry.ports.vectors import (
    Embedder,
    EmbedderUnavailable,
    IndexUnavailable,
    Vector,
    VectorSearch,
)

log = logging.getLogger(__name__)

_MOST_SHARING: Final = 1000
"""Capabilities with a common tool that are compared."""

_MOST_NEAR: Final = 10
"""Capabilities nearest by meaning whose intents are compared: each is embedded."""


@dataclass(frozen=True)
class Relations:
    """Infers relations and stores them."""

    dependencies: DependencyStore
    embedder: Embedder
    index: VectorSearch

    async def infer(self, scope: Scope, behaviour: UUID) -> bool:
        """Relate a listed capability to others; return whether any relation is new. A repetition
        adds none between the same. Where the embedder or the index is away, by tools alone. Raises
        StorageUnavailable."""
        one = await self.dependencies.peer(scope, behaviour)
        if one is None or not one.listed:
            return False
        others = await self.dependencies.peers_by_tools(scope, behaviour, _MOST_SHARING)
        related = [*sharing(one, others)]
        try:
            related += await self._alternatives(scope, one)
        except (EmbedderUnavailable, IndexUnavailable) as outage:
            log.warning("%s: %s is compared by its tools alone: %s", scope, behaviour, outage)
        return bool(related) and await self.dependencies.relate(scope, behaviour, related) > 0

    async def _alternatives(self, scope: Scope, one: Peer) -> Sequence[Related]:
        if not one.intent:
            return ()
        embedded = await self.embedder.embed([one.intent])
        (vector,) = embedded.vectors
        near = await self.index.nearest(scope, "capability", embedded.model, vector, _MOST_NEAR + 1)
        found = await self.dependencies.peers(scope, [UUID(each.id) for each in near])
        peers = [each for each in found if may_be_alternative(one, each)]
        if not peers:
            return ()
        intents = await self.embedder.embed([each.intent for each in peers])
        cosines = [_cosine(vector, each) for each in intents.vectors]
        return alternatives(zip(peers, cosines, strict=True))


def _cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two unit vectors."""
    return sum(a * b for a, b in zip(one, other, strict=True))
