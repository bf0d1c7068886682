"""Reservations of names in memory; tested by the same suite as the Postgres store."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_registry.adapters.memory_tables import MemoryTables, RecordRow, VersionRow
from pml_registry.domain.names import fqdn_of
from pml_registry.domain.reservations import (
    Record,
    Refusal,
    Reservation,
    Reserve,
    Standing,
    Use,
    Wish,
    decide,
)
from pml_registry.ports import BehaviourTexts, FoundBy, NameStore, VersionSigning


class MemoryNameStore(NameStore):
    """Names in shared in-memory tables."""

    def __init__(self, tables: MemoryTables, signing: VersionSigning) -> None:
        self._tables = tables
        self._signing = signing

    @override
    async def reserve(
        self, scope: Scope, wish: Wish, lapses_at: datetime
    ) -> Use | Reserve | Refusal:
        standing = Standing(
            holder=self.holder(scope, str(wish.name)),
            reservation=await self.in_the_way(scope, str(wish.name)),
            of_code=self._of_code(scope, wish),
        )
        decided = decide(wish, standing)
        key = scope, wish.workflow_id
        if isinstance(decided, Reserve) and not self._is_settled(key):
            self._tables.reservations[key] = Reservation(
                name=str(wish.name),
                workflow_id=wish.workflow_id,
                behaviour=wish.behaviour,
                purpose=decided.purpose,
                principal=wish.principal,
                lapses_at=lapses_at,
                record_id=decided.record.record_id if decided.record else None,
                tag=wish.tag,
                change_summary=wish.change_summary,
            )
        return decided

    @override
    async def in_the_way(self, scope: Scope, name: str) -> Reservation | None:
        return next(
            (
                held
                for (its_scope, _), held in self._tables.reservations.items()
                if its_scope == scope and callable_name(held.name) == callable_name(name)
            ),
            None,
        )

    @override
    async def reservation(self, scope: Scope, workflow_id: UUID) -> Reservation | None:
        return self._tables.reservations.get((scope, workflow_id))

    @override
    async def texts(self, scope: Scope, behaviour: UUID) -> BehaviourTexts:
        stored = self._tables.stored(scope, behaviour)
        if stored is None:
            raise LookupError(f"{scope} has no behaviour {behaviour}")
        record = self._tables.behaviours[scope, behaviour].record
        return BehaviourTexts(
            stored.name, stored.description, stored.tools_used, record.parameters_schema
        )

    @override
    async def settle(self, scope: Scope, workflow_id: UUID, found_by: FoundBy) -> None:
        held = self._tables.reservations.get((scope, workflow_id))
        if held is None or held.is_settled:
            return
        settled = replace(held, is_settled=True, record_id=await self._give(scope, held))
        self._tables.reservations[scope, workflow_id] = settled
        key = scope, held.behaviour
        row = self._tables.behaviours[key]
        record = row.record.model_copy(update={"listed": True})
        self._tables.store(key, replace(row, record=record, terms=found_by.terms))
        self._tables.embed_behaviour(*key, found_by.embedded)

    @override
    async def renew(self, scope: Scope, workflow_id: UUID, lapses_at: datetime) -> None:
        held = self._tables.reservations.get((scope, workflow_id))
        if held is not None:
            self._tables.reservations[scope, workflow_id] = replace(held, lapses_at=lapses_at)

    @override
    async def release(self, scope: Scope, workflow_id: UUID) -> None:
        self._tables.reservations.pop((scope, workflow_id), None)

    @override
    async def lapsed(self, now: datetime, limit: int) -> Sequence[tuple[Scope, Reservation]]:
        lapsed = [
            (scope, held)
            for (scope, _), held in self._tables.reservations.items()
            if held.lapses_at <= now
        ]
        return sorted(lapsed, key=lambda each: each[1].lapses_at)[:limit]

    def _is_settled(self, key: tuple[Scope, UUID]) -> bool:
        held = self._tables.reservations.get(key)
        return held is not None and held.is_settled

    async def _give(self, scope: Scope, held: Reservation) -> UUID:
        unnamed = self._unnamed(scope, held.behaviour)
        by, given = held.principal, {"name": held.name}
        if held.purpose == "create" and unnamed is not None:
            record_id = self.name_unnamed(scope, held.behaviour, held.name, by).record_id
            self._tables.note(scope, record_id, "named", by, 1, {**given})
            return record_id
        record_id = held.record_id or self._row_with(scope, held.behaviour).record_id
        row = self._tables.records[scope, record_id]
        if held.purpose != "version":
            number = len(row.versions) - [*reversed(row.behaviours)].index(held.behaviour)
            self._put(scope, replace(row, names=(held.name, *row.names)))
            self._tables.note(scope, record_id, "aliased", by, number, {**given})
            return record_id
        is_free = held.tag not in [version.tag for version in row.versions]
        version = VersionRow(
            held.behaviour,
            by,
            datetime.now(UTC),
            held.tag if is_free else None,
            held.change_summary,
            signature=await self._tables.signature(
                self._signing, scope, record_id, len(row.versions) + 1, held.behaviour
            ),
            signed_at=datetime.now(UTC),
        )
        versions = (*row.versions, version)
        names = row.names
        if unnamed is not None:
            del self._tables.records[scope, unnamed.record_id]
            names = (*unnamed.names, *names)
        self._put(scope, replace(row, names=names, versions=versions, latest=len(versions)))
        summary: JsonObject = {"change_summary": held.change_summary}
        self._tables.note(scope, record_id, "versioned", by, len(versions), summary)
        return record_id

    def name_unnamed(self, scope: Scope, behaviour: UUID, name: str, owner: str) -> RecordRow:
        """Give a behaviour's provisional record its name. Raises LookupError."""
        unnamed = self._unnamed(scope, behaviour)
        if unnamed is None:
            raise LookupError(f"{scope} has no unnamed record of {behaviour}")
        named = replace(unnamed, names=(*unnamed.names, name), owner=owner)
        self._put(scope, named)
        return named

    def named_record_of(self, scope: Scope, behaviour: UUID) -> Record | None:
        """The named record that has a behaviour."""
        return self._record_of(scope, lambda row: row.named and behaviour in row.behaviours)

    def _unnamed(self, scope: Scope, behaviour: UUID) -> RecordRow | None:
        return self._row_of(scope, lambda row: not row.named and behaviour in row.behaviours)

    def _put(self, scope: Scope, row: RecordRow) -> UUID:
        self._tables.records[scope, row.record_id] = row
        for name in row.names:
            self._tables.names[scope, name] = row.record_id
        return row.record_id

    def holder(self, scope: Scope, name: str) -> Record | None:
        """The record that a name leads to, or one with the same callable name."""
        exact = self._tables.names.get((scope, name))
        called = (
            record_id
            for (its_scope, other), record_id in self._tables.names.items()
            if its_scope == scope and callable_name(other) == callable_name(name)
        )
        wanted = exact or next(called, None)
        return self._record_of(scope, lambda row: row.record_id == wanted)

    def _of_code(self, scope: Scope, wish: Wish) -> Record | None:
        def distance(row: RecordRow) -> tuple[bool, bool]:
            means_it = row.behaviours[row.latest - 1] == wish.behaviour
            return row.owner != wish.principal, not means_it

        rows = [
            row
            for (its_scope, _), row in self._tables.records.items()
            if its_scope == scope and row.named and wish.behaviour in row.behaviours
        ]
        nearest = min(rows, key=distance, default=None)
        return nearest and self._record_of(scope, lambda row: row is nearest)

    def _row_with(self, scope: Scope, behaviour: UUID) -> RecordRow:
        row = self._row_of(scope, lambda row: behaviour in row.behaviours)
        if row is None:
            raise LookupError(f"{scope} has no record of {behaviour}")
        return row

    def _row_of(self, scope: Scope, is_it: Callable[[RecordRow], bool]) -> RecordRow | None:
        own = (row for (its_scope, _), row in self._tables.records.items() if its_scope == scope)
        return next((row for row in own if is_it(row)), None)

    def _record_of(self, scope: Scope, is_it: Callable[[RecordRow], bool]) -> Record | None:
        row = self._row_of(scope, is_it)
        if row is None:
            return None
        return Record(
            record_id=row.record_id,
            name=row.name,
            fqdn=fqdn_of(scope, row.name, row.record_id),
            owner=row.owner,
            behaviours=row.behaviours,
            latest=row.latest,
            tags=[version.tag for version in row.versions if version.tag],
            is_private=row.visibility == "private",
        )
