"""Candidates of discovery in memory; tested by the same suite as Postgres."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np
from typing_extensions import override

from pml_common.contracts.registry import DiscoveryHit
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolAnnotations, ToolDefinition
from pml_common.storage.columns import scope_columns
from pml_registry.adapters.memory_tables import MemoryTables
from pml_registry.domain.intents import Part
from pml_registry.domain.offers import Subject, judged_tool
from pml_registry.domain.ranking import Candidate, Kind, Ranked
from pml_registry.domain.record_views import discovery_hits, presented
from pml_registry.domain.visibility import Viewer, sees
from pml_registry.ports import CandidateStore
from pml_registry.ports.vectors import Embedded, Near, PointKey


class MemoryCandidateStore(CandidateStore):
    """Scans every row; finds words by their terms."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

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
        scope, visible = viewer.scope, self._visible(viewer, kind)
        considered = {id_ for part in parts for id_ in _worded(visible, part)}
        considered |= {*(each.id for each in near), *supported}
        return [
            self._candidate(
                scope, kind, id_, self._cosines(scope, kind, id_, parts, embedded), terms
            )
            for id_, terms in visible.items()
            if id_ in considered
        ]

    @override
    async def subjects(
        self, scope: Scope, ranked: Sequence[Ranked]
    ) -> Mapping[tuple[Kind, str], Subject]:
        records = {
            str(record.capability_id): Subject(
                [self._judged(scope, tool) for tool in record.tools_used],
                (record.name, *record.aliases),
            )
            for record in self._tables.latest(scope)
        }
        return {
            (each.kind, each.id): Subject([self._judged(scope, each.id)])
            if each.kind == "tool"
            else records[each.id]
            for each in ranked
        }

    @override
    async def hits(self, viewer: Viewer, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        tables, scope = self._tables, viewer.scope
        tools = {
            tool_id: tool
            for (its_scope, tool_id), (tool, _) in tables.tools.items()
            if its_scope == scope
        }
        visible = self._visible(viewer, "capability")
        capabilities = {
            str(record.capability_id): presented(record)
            for record in reversed(list(tables.versions(scope)))
            if str(record.capability_id) in visible
            and sees(viewer, scope, record.visibility, record.owner)
        }
        return discovery_hits(ranked, tools, capabilities)

    def _judged(self, scope: Scope, tool_id: str) -> ToolDefinition:
        row = self._tables.tools.get((scope, tool_id))
        return judged_tool(tool_id, ToolAnnotations() if row is None else row[0].annotations)

    def _visible(self, viewer: Viewer, kind: Kind) -> Mapping[str, Mapping[str, float]]:
        scope = viewer.scope
        if kind == "tool":
            return {
                tool_id: terms
                for (its_scope, tool_id), (_, terms) in self._tables.tools.items()
                if its_scope == scope
            }
        latest = {
            record.capability_id
            for record in self._tables.latest(scope)
            if sees(viewer, scope, record.visibility, record.owner)
        }
        return {
            str(behaviour): row.terms
            for (its_scope, behaviour), row in self._tables.behaviours.items()
            if its_scope == scope and row.record.listed and behaviour in latest
        }

    def _cosines(
        self,
        scope: Scope,
        kind: Kind,
        id_: str,
        parts: Sequence[Part],
        embedded: Embedded | None,
    ) -> tuple[float, ...]:
        """Cosines with each part; 0 where either has no vector of the model."""
        of_models = self._tables.vectors.get(PointKey(*scope_columns(scope), kind, id_), {})
        if embedded is None or embedded.model not in of_models:
            return (0.0,) * len(parts)
        own = of_models[embedded.model]
        return tuple(float(np.dot(own, vector)) for vector in embedded.vectors)

    def _candidate(
        self,
        scope: Scope,
        kind: Kind,
        id_: str,
        cosines: tuple[float, ...],
        terms: Mapping[str, float],
    ) -> Candidate:
        if kind == "tool":
            server = self._tables.tools[scope, id_][0].server
            return Candidate(kind, id_, cosines, terms, server)
        usage = self._tables.behaviours[scope, UUID(id_)].record.usage
        rate = usage.success_rate if usage.value is None else usage.value
        return Candidate(kind, id_, cosines, terms, runs=usage.judged, success_rate=rate)


def _worded(visible: Mapping[str, Mapping[str, float]], part: Part) -> Sequence[str]:
    """Ids of those whose terms fit the part best, at most its limit."""
    weights = {
        id_: sum(terms.get(term, 0.0) for term in part.terms) for id_, terms in visible.items()
    }
    having = (id_ for id_, weight in weights.items() if weight > 0.0)
    return sorted(having, key=lambda id_: (-weights[id_], id_))[: part.limit]
