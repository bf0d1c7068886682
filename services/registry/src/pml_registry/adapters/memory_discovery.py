"""Discovery in memory; tested by the same suite as Postgres."""

import math
import re
from collections.abc import Iterator, Sequence
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.registry import DiscoveryHit
from pml_common.contracts.scope import Scope
from pml_registry.adapters.memory_tables import MemoryTables, SearchEntry
from pml_registry.domain.ranking import Candidate, Kind, Ranked
from pml_registry.domain.record_views import discovery_hits
from pml_registry.ports import CandidateStore, Embedded, Vector, VectorIndex

_WORD = re.compile(r"\w+")


class MemoryDiscovery(VectorIndex, CandidateStore):
    """Compares words literally, without stemming."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @override
    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[str]:
        same = [(id_, found) for id_, found in self._visible(scope, kind) if found.model == model]
        same.sort(key=lambda entry: -_cosine(entry[1].vector, vector))
        return [id_ for id_, _ in same[:limit]]

    @override
    async def candidates(
        self,
        scope: Scope,
        kind: Kind,
        intent: str,
        embedded: Embedded,
        near: Sequence[str],
        limit: int,
    ) -> Sequence[Candidate]:
        wanted = _words(intent)
        weighed = [
            Candidate(
                kind,
                id_,
                _cosine(found.vector, embedded.vectors[0]) if found.model == embedded.model else 0,
                len(wanted & _words(found.document)) / max(1, len(wanted)),
            )
            for id_, found in self._visible(scope, kind)
        ]
        worded = sorted((c for c in weighed if c.coverage > 0), key=lambda c: -c.coverage)[:limit]
        considered = {*near, *(candidate.id for candidate in worded)}
        return [candidate for candidate in weighed if candidate.id in considered]

    @override
    async def hits(self, scope: Scope, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        tables = self._tables
        tools = {
            tool_id: tool
            for (its_scope, tool_id), (tool, _) in tables.tools.items()
            if its_scope == scope
        }
        visible = {id_ for id_, _ in self._visible(scope, "capability")}
        capabilities = {id_: tables.capabilities[scope, UUID(id_)][0].record for id_ in visible}
        return discovery_hits(ranked, tools, capabilities)

    def _visible(self, scope: Scope, kind: Kind) -> Iterator[tuple[str, SearchEntry]]:
        if kind == "tool":
            for (its_scope, tool_id), (_, found) in self._tables.tools.items():
                if its_scope == scope:
                    yield tool_id, found
            return
        for (its_scope, capability_id), (row, found) in self._tables.capabilities.items():
            if its_scope == scope and row.record.listed:
                yield str(capability_id), found


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _cosine(one: Vector, other: Vector) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))
