"""Curation in memory; tested by the same suite as in Postgres."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.scope import Scope
from pml_registry.adapters.memory_tables import BehaviourRow, MemoryTables
from pml_registry.domain.curation import Suggestion, Unnamed
from pml_registry.domain.visibility import Viewer, sees
from pml_registry.ports import CodeShape
from pml_registry.ports.curation import CurationStore, Variant


class MemoryCurationStore(CurationStore):
    """Curation in shared in-memory tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self._suggested: dict[tuple[Scope, UUID], Suggestion] = {}
        self._claimed_until: dict[Scope, datetime] = {}

    @override
    async def unnamed(self, viewer: Viewer, *, least_usage: int, limit: int) -> Sequence[Unnamed]:
        found = [
            record
            for record in self._unnamed(viewer.scope)
            if record.usage.count >= least_usage and _is_seen(viewer, record)
        ]
        found.sort(key=lambda record: (-record.usage.count, record.name))
        return [
            Unnamed(
                record.capability_id,
                record.name,
                record.owner,
                record.description,
                record.tools_used,
                record.code,
                record.usage,
            )
            for record in found[:limit]
        ]

    @override
    async def count_unnamed(self, scope: Scope) -> int:
        return len(self._unnamed(scope))

    @override
    async def taken(self, scope: Scope, names: Collection[str]) -> Collection[str]:
        held = [name for its_scope, name in self._tables.names if its_scope == scope]
        reserved = [
            reservation.name
            for (its_scope, _), reservation in self._tables.reservations.items()
            if its_scope == scope
        ]
        return {callable_name(name) for name in [*held, *reserved]} & {*names}

    @override
    async def suggested(
        self, scope: Scope, capabilities: Sequence[UUID]
    ) -> Mapping[UUID, Suggestion]:
        found = ((each, self._suggested.get((scope, each))) for each in capabilities)
        return {each: suggestion for each, suggestion in found if suggestion is not None}

    @override
    async def keep(self, scope: Scope, suggestions: Sequence[Suggestion]) -> None:
        self._suggested |= {(scope, each.capability_id): each for each in suggestions}

    @override
    async def claim_uncurated(
        self, least: int, limit: int, now: datetime, until: datetime
    ) -> Sequence[Scope]:
        counts = {scope: self._uncurated(scope) for scope, _ in self._tables.records}
        most = sorted(counts, key=lambda scope: (-counts[scope], scope.org, scope.project))
        free = [
            scope
            for scope in [scope for scope in most if counts[scope] >= least][:limit]
            if scope not in self._claimed_until or self._claimed_until[scope] <= now
        ]
        self._claimed_until |= dict.fromkeys(free, until)
        return free

    @override
    async def release(self, scope: Scope) -> None:
        self._claimed_until.pop(scope, None)

    @override
    async def variant_groups(
        self, viewer: Viewer, *, shapes: int, variants: int
    ) -> Sequence[Sequence[Variant]]:
        groups: dict[str, list[BehaviourRow]] = {}
        for row in self._seen(viewer):
            if row.shape is not None and row.record.usage.success_count > 0:
                groups.setdefault(row.shape.shape_hash, []).append(row)
        found: list[tuple[int, str, list[BehaviourRow]]] = []
        for shape, rows in groups.items():
            offered = self._tables.offered.get((viewer.scope, shape))
            uses = sum(row.record.usage.count for row in rows)
            if len(rows) > 1 and any(row.record.capability_id == offered for row in rows):
                rows.sort(key=lambda row: (row.record.capability_id != offered, _age(row)))
                found.append((-uses, shape, rows))
        found.sort(key=lambda each: each[:2])
        return [[_variant(row) for row in rows[:variants]] for _, _, rows in found[:shapes]]

    @override
    async def variants_of(
        self, viewer: Viewer, capability_id: UUID, limit: int
    ) -> Sequence[Variant]:
        own = self._tables.behaviours[viewer.scope, capability_id]
        others = [
            row
            for row in self._seen(viewer)
            if row is not own
            and row.shape is not None
            and row.shape == own.shape
            and row.record.usage.success_count > 0
        ]
        return [_variant(row) for row in [own, *sorted(others, key=_age)][:limit]]

    @override
    async def hand_over(self, scope: Scope, capability_id: UUID, lifted: UUID) -> None:
        shape = self._tables.behaviours[scope, capability_id].shape
        if shape is None:
            return
        self._tables.offered[scope, shape.shape_hash] = lifted
        named = {each.capability_id for each in self._tables.versions(scope) if each.named}
        for row in self._behaviours(scope):
            id_ = row.record.capability_id
            if row.shape == shape and id_ not in named and id_ != lifted:
                record = row.record.model_copy(update={"listed": False})
                self._tables.behaviours[scope, id_] = replace(row, record=record)

    @override
    async def unread(self, limit: int) -> Sequence[tuple[Scope, Variant]]:
        rows = self._tables.behaviours.items()
        unread = [(scope, _variant(row)) for (scope, _), row in rows if row.shape is None]
        return unread[:limit]

    @override
    async def set_shape(self, scope: Scope, capability_id: UUID, shape: CodeShape) -> None:
        row = self._tables.behaviours[scope, capability_id]
        if row.shape is None:
            self._tables.store((scope, capability_id), replace(row, shape=shape))

    def _behaviours(self, scope: Scope) -> Sequence[BehaviourRow]:
        rows = self._tables.behaviours.items()
        return [row for (its_scope, _), row in rows if its_scope == scope]

    def _seen(self, viewer: Viewer) -> Sequence[BehaviourRow]:
        every = self._tables.versions(viewer.scope)
        seen = {record.capability_id for record in every if _is_seen(viewer, record)}
        rows = self._behaviours(viewer.scope)
        return [row for row in rows if row.record.capability_id in seen]

    def _unnamed(self, scope: Scope) -> list[CapabilityRecord]:
        latest = self._tables.latest(scope)
        return [record for record in latest if record.listed and not record.named]

    def _uncurated(self, scope: Scope) -> int:
        unnamed = self._unnamed(scope)
        return sum((scope, record.capability_id) not in self._suggested for record in unnamed)


def _is_seen(viewer: Viewer, record: CapabilityRecord) -> bool:
    return sees(viewer, viewer.scope, record.visibility, record.owner)


def _age(row: BehaviourRow) -> tuple[datetime, UUID]:
    return row.record.created_at, row.record.capability_id


def _variant(row: BehaviourRow) -> Variant:
    return Variant(row.record.capability_id, row.record.code)
