"""Discovery in memory; the twin of Postgres, under the same contract suite."""

import math
import re
from collections.abc import Iterator, Sequence
from uuid import UUID

from pml_common.contracts.registry import DiscoveryHit
from pml_common.contracts.scope import Scope
from pml_registry.adapters.memory_tables import Found, MemoryTables
from pml_registry.domain.discovery_results import discovery_hits
from pml_registry.domain.ranking import Candidate, Kind, Ranked
from pml_registry.ports import Embedded, Vector

_WORD = re.compile(r"\w+")


class MemoryDiscovery:
    """See `ports.VectorIndex` and `ports.Evidence`; words are words, without grammar."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[str]:
        """See `ports.VectorIndex`."""
        same = [(id_, found) for id_, found in self._visible(scope, kind) if found.model == model]
        same.sort(key=lambda entry: -_cosine(entry[1].vector, vector))
        return [id_ for id_, _ in same[:limit]]

    async def weigh(
        self,
        scope: Scope,
        kind: Kind,
        intent: str,
        embedded: Embedded,
        near: Sequence[str],
        limit: int,
    ) -> Sequence[Candidate]:
        """See `ports.Evidence`."""
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

    async def hits(self, scope: Scope, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        """See `ports.Evidence`."""
        tables = self._tables
        tools = {
            tool_id: tool
            for (its_scope, tool_id), (tool, _) in tables.tools.items()
            if its_scope == scope
        }
        visible = {id_ for id_, _ in self._visible(scope, "capability")}
        capabilities = {id_: tables.capabilities[scope, UUID(id_)][0].record for id_ in visible}
        return discovery_hits(ranked, tools, capabilities)

    def _visible(self, scope: Scope, kind: Kind) -> Iterator[tuple[str, Found]]:
        if kind == "tool":
            for (its_scope, tool_id), (_, found) in self._tables.tools.items():
                if its_scope == scope:
                    yield tool_id, found
            return
        for (its_scope, capability_id), (held, found) in self._tables.capabilities.items():
            if its_scope == scope and held.record.listed:
                yield str(capability_id), found


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _cosine(one: Vector, other: Vector) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))
