"""Dependencies between capabilities in memory; tested by the same suite as the Postgres store."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.dependencies import (
    Dependency,
    DependencyPage,
    DependencyType,
    ListDependencies,
)
from pml_common.contracts.scope import Scope
from pml_registry.adapters.memory_tables import EdgeRow, MemoryTables
from pml_registry.domain.dependencies import (
    STATED_CONFIDENCE,
    Need,
    NewDependency,
    Peer,
    Related,
    admit_dependency,
    cycle_closed,
)
from pml_registry.domain.orders import MOST_CONFIDENT
from pml_registry.domain.visibility import Viewer
from pml_registry.ports.graph import Added, DependencyStore


class MemoryDependencyStore(DependencyStore):
    """Dependencies in shared in-memory tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self._rows = tables.dependencies

    @override
    async def add(self, scope: Scope, new: NewDependency) -> Added:
        key = (scope, new.from_, new.to, new.type)
        if key in self._rows:
            self._rows[key] = self._rows[key].kept(STATED_CONFIDENCE)
            return Added(self._dependency(*key), False, ())
        cycle, at = admit_dependency(new, self._needs(scope)), datetime.now(UTC)
        shown = new.shown_by(at)
        self._rows[key] = EdgeRow(shown, shown.confidence(at), at, at)
        return Added(self._dependency(*key), True, cycle)

    @override
    async def remove(
        self, scope: Scope, from_: UUID, to: UUID, type_: DependencyType | None
    ) -> int:
        found = [
            key for key in self._rows if key[:3] == (scope, from_, to) and type_ in (None, key[3])
        ]
        for key in found:
            del self._rows[key]
        return len(found)

    @override
    async def page(self, asked: ListDependencies, behaviour: UUID) -> DependencyPage:
        found = [
            each
            for each in self._every(asked.scope, asked.principal)
            if (asked.direction != "in" and each.from_capability_id == behaviour)
            or (asked.direction != "out" and each.to_capability_id == behaviour)
        ]
        page, following = MOST_CONFIDENT.sliced(found, asked.cursor, asked.offset, asked.limit)
        return DependencyPage(
            capability_id=behaviour, dependencies=page, total=len(found), next_cursor=following
        )

    @override
    async def counts(self, viewer: Viewer, behaviours: Sequence[UUID]) -> Mapping[UUID, int]:
        scope, principal = viewer.scope, viewer.principal
        pairs = [key[1:3] for key in self._rows if key[0] == scope]
        both = [*pairs, *((to, from_) for from_, to in pairs)]
        ends = Counter(one for one, other in both if self._name(scope, other, principal))
        return {each: ends[each] for each in behaviours}

    @override
    async def needs(
        self, scope: Scope, behaviours: Sequence[UUID], limit: int
    ) -> Mapping[UUID, Sequence[Dependency]]:
        every = [each for each in self._every(scope, None) if each.edge_type in _NEEDS]
        shown = [each for each in every if self._name(scope, each.to_capability_id, "")]
        return {
            behaviour: [each for each in shown if each.from_capability_id == behaviour][:limit]
            for behaviour in behaviours
        }

    @override
    async def cycle(self, scope: Scope, caller: UUID, called: UUID) -> Sequence[UUID]:
        return cycle_closed(caller, called, self._needs(scope))

    @override
    async def peer(self, scope: Scope, behaviour: UUID) -> Peer | None:
        row = self._tables.behaviours.get((scope, behaviour))
        if row is None:
            return None
        record = row.record
        return Peer(behaviour, record.description, frozenset(record.tools_used), record.listed)

    @override
    async def peers(self, scope: Scope, behaviours: Sequence[UUID]) -> Sequence[Peer]:
        found = self._listed(scope)
        return [found[each] for each in behaviours if each in found]

    @override
    async def peers_by_tools(self, scope: Scope, behaviour: UUID, limit: int) -> Sequence[Peer]:
        one = self._tables.behaviours[scope, behaviour].record
        sharing = [
            each
            for each in self._listed(scope).values()
            if each.behaviour != behaviour and each.tools & {*one.tools_used}
        ]
        return sharing[:limit]

    @override
    async def relate(self, scope: Scope, behaviour: UUID, related: Sequence[Related]) -> int:
        made = 0
        for each in related:
            key = (scope, behaviour, each.to, each.type)
            row, reverse = (
                self._rows.get(key),
                self._rows.get((scope, each.to, behaviour, each.type)),
            )
            if (reverse and reverse.shown.base) or (row and row.shown.base):
                continue
            made += 1
            if row is None:
                self._rows[key] = EdgeRow.stated("inferred", each.confidence)
            else:
                confidence = max(row.confidence, each.confidence)
                self._rows[key] = replace(row.kept(each.confidence), confidence=confidence)
        return made

    def _listed(self, scope: Scope) -> Mapping[UUID, Peer]:
        return {
            each.capability_id: Peer(
                each.capability_id, each.description, frozenset(each.tools_used)
            )
            for each in self._tables.latest(scope)
            if each.listed
        }

    def _needs(self, scope: Scope) -> Sequence[Need]:
        return [
            Need(from_, to, "template" if row.shown.base == "template" else row.shown.source)
            for (its_scope, from_, to, type_), row in self._rows.items()
            if its_scope == scope and type_ in _NEEDS
        ]

    def _every(self, scope: Scope, principal: str | None) -> Sequence[Dependency]:
        """All that a principal sees; a service, None, sees all."""
        keys = [key for key in self._rows if key[0] == scope]
        seen = [key for key in keys if all(self._name(scope, end, principal) for end in key[1:3])]
        return sorted([self._dependency(*key) for key in seen], key=MOST_CONFIDENT.place)

    def _dependency(self, scope: Scope, from_: UUID, to: UUID, type_: DependencyType) -> Dependency:
        row = self._rows[scope, from_, to, type_]
        return Dependency(
            from_capability_id=from_,
            from_name=self._name(scope, from_, None) or "",
            to_capability_id=to,
            to_name=self._name(scope, to, None) or "",
            edge_type=type_,
            edge_source=row.shown.source,
            observed_count=row.shown.count,
            confidence_score=row.confidence,
            created_at=row.created_at,
            last_observed=row.shown.last_shown,
        )

    def _name(self, scope: Scope, behaviour: UUID, principal: str | None) -> str | None:
        """Return the name that the function `shown_name` of the schema gives."""
        having = [each for each in self._tables.versions(scope) if each.capability_id == behaviour]
        if not having:
            return str(behaviour)
        for each in having:
            if principal is None or each.visibility != "private" or each.owner == principal:
                return each.name
        return None


_NEEDS = ("contains", "dependency")
