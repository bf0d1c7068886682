"""An embedder, an index and a store of candidates that compute each answer once, for many folds."""

from collections.abc import Mapping, Sequence

from typing_extensions import override

from pml_common.contracts.registry import DiscoveryHit
from pml_common.contracts.scope import Scope
from pml_registry.domain.intents import Part
from pml_registry.domain.offers import Subject
from pml_registry.domain.ranking import Candidate, Kind, Ranked
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import CandidateStore
from pml_registry.ports.vectors import Embedded, Embedder, Near, Vector, VectorSearch


class RememberedEmbedder(Embedder):
    """Embeds each text once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Vector] = {}

    @override
    async def model(self) -> str:
        return await self._embedder.model()

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        embedded = await self._embedder.embed(new)
        self._vectors |= dict(zip(new, embedded.vectors, strict=True))
        return Embedded(embedded.model, [self._vectors[text] for text in texts])


class RememberedIndex(VectorSearch):
    """Searches for each vector once."""

    def __init__(self, index: VectorSearch) -> None:
        self._index = index
        self._known: dict[tuple[Kind, tuple[float, ...]], Sequence[Near]] = {}

    @override
    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[Near]:
        key = kind, tuple(vector)
        if key not in self._known:
            self._known[key] = await self._index.nearest(scope, kind, model, vector, limit)
        return self._known[key]


class RememberedCandidates(CandidateStore):
    """Weighs all tools once for each intent, and returns those that the store would."""

    def __init__(self, store: CandidateStore, tools: Sequence[str]) -> None:
        self._store = store
        self._tools = tools
        self._known: dict[tuple[Kind, str], tuple[Mapping[str, Candidate], set[str]]] = {}

    @override
    async def candidates(
        self,
        viewer: Viewer,
        kind: Kind,
        parts: Sequence[Part],
        embedded: Embedded | None,
        near: Sequence[Near],
        supported: Sequence[str] = (),
    ) -> Sequence[Candidate]:
        key = kind, parts[0].text
        if key not in self._known:
            found = await self._store.candidates(viewer, kind, parts, embedded, near)
            weighed = await self._store.candidates(
                viewer, kind, parts, embedded, near, self._tools if kind == "tool" else ()
            )
            by_id = {each.id: each for each in weighed}
            self._known[key] = by_id, {each.id for each in found}
        by_id, chosen = self._known[key]
        return [by_id[id_] for id_ in by_id if id_ in chosen or id_ in supported]

    @override
    async def subjects(
        self, scope: Scope, ranked: Sequence[Ranked]
    ) -> Mapping[tuple[Kind, str], Subject]:
        return await self._store.subjects(scope, ranked)

    @override
    async def hits(self, viewer: Viewer, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        return await self._store.hits(viewer, ranked)
