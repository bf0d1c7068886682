"""Records in memory; tested by the same suite as the Postgres store."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts import ids
from pml_common.contracts.capability import Usage
from pml_common.contracts.dns import QueryRecords, RecordSummary, VersionSummary
from pml_common.contracts.references import Fqdn, ScopedName
from pml_common.contracts.registry import CapabilityChanged
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_registry.adapters.memory_names import MemoryNameStore
from pml_registry.adapters.memory_record_rows import (
    callable_names,
    codes_of,
    is_match,
    located,
    located_by_id,
    made_by,
    order_of,
    rank_of,
    record_summary,
    state_of,
    stored_change,
    version_summary,
)
from pml_registry.adapters.memory_tables import (
    BehaviourRow,
    MemoryTables,
    RecordRow,
    VersionRow,
)
from pml_registry.domain.cursors import After
from pml_registry.domain.names import first_free, unnamed_names
from pml_registry.domain.record_changes import Effect, RecordState, Refused, StoredChange
from pml_registry.domain.reservations import holder_text, merge_refused
from pml_registry.domain.signatures import StoredVersion, version_in
from pml_registry.domain.visibility import Viewer, place_of, sees
from pml_registry.ports import FoundBy, VersionSigning
from pml_registry.ports.records import (
    ChangeRequest,
    ForkRequest,
    Located,
    Made,
    MergeRequest,
    RecordStore,
    Target,
)

_NEAREST = ("project", "org", "public")


class MemoryRecordStore(RecordStore):
    """Records in shared in-memory tables."""

    def __init__(self, tables: MemoryTables, signing: VersionSigning) -> None:
        self._tables = tables
        self._signing = signing
        self._names = MemoryNameStore(tables, signing)

    @override
    async def locate(self, viewer: Viewer, target: Target | str) -> Located | None:
        rows = self._rows(viewer)
        match target:
            case UUID():
                own = [(scope, row) for scope, row in rows if scope == viewer.scope]
                return located_by_id(viewer, target, own, self._tables.versions(viewer.scope))
            case ScopedName(scope, name):
                found = (row for where, row in rows if where == scope and str(name) in row.names)
                return located(viewer, scope, next(found, None))
            case Fqdn(scope, name, digits):
                found = (
                    row
                    for where, row in rows
                    if where == scope
                    and str(name) in row.names
                    and row.record_id.hex.startswith(digits)
                )
                return located(viewer, scope, next(found, None))
            case _:
                is_called = isinstance(target, str)
                matching = [
                    (scope, row)
                    for scope, row in rows
                    if (is_called and scope != viewer.scope and target in callable_names(row))
                    or (not is_called and str(target) in row.names)
                ]
                matching.sort(key=lambda found: _NEAREST.index(place_of(viewer, found[0])))
                return located(viewer, *matching[0]) if matching else None

    def _rows(self, viewer: Viewer) -> Sequence[tuple[Scope, RecordRow]]:
        """The rows that the viewer sees."""
        return [
            (scope, row)
            for (scope, _), row in self._tables.records.items()
            if sees(viewer, scope, row.visibility, row.owner)
        ]

    @override
    async def versions_of(
        self, viewer: Viewer, scope: Scope, record_id: UUID
    ) -> Sequence[tuple[VersionSummary, StoredVersion]]:
        row = self._tables.records[scope, record_id]
        return [
            (
                version_summary(number, version, self._tables.behaviours[scope, version.behaviour]),
                version_in(self._tables.version(scope, row, number)),
            )
            for number, version in reversed([*enumerate(row.versions, 1)])
        ]

    @override
    async def query(
        self, query: QueryRecords, after: After | None
    ) -> tuple[Sequence[tuple[After, RecordSummary]], int]:
        viewer = Viewer(query.scope, query.principal, query.is_admin)
        reached = _NEAREST[: _NEAREST.index(query.reach) + 1]
        found: list[tuple[After, RecordSummary]] = []
        for scope, row in self._rows(viewer):
            record = self._tables.version(scope, row, row.latest)
            if place_of(viewer, scope) in reached and is_match(query, row, record):
                summary = record_summary(
                    self._tables, scope, row, record, with_parameters=query.include_parameters
                )
                found.append((rank_of(query, summary), summary))
        found.sort(key=lambda each: order_of(each[0]))
        rest = [each for each in found if after is None or order_of(each[0]) > order_of(after)]
        return rest[: query.limit + 1], len(found)

    @override
    async def history(
        self, viewer: Viewer, scope: Scope, record_id: UUID, before: int | None, limit: int
    ) -> Sequence[tuple[StoredChange, Sequence[str]]]:
        changes = [*enumerate(self._tables.changes.get((scope, record_id), ()), 1)]
        versions = self._tables.records[scope, record_id].versions
        shown = [each for each in reversed(changes) if before is None or each[0] < before]
        return [
            (
                stored_change(sequence, row, versions[row.version - 1]),
                codes_of(self._tables, scope, record_id, row),
            )
            for sequence, row in shown[:limit]
        ]

    @override
    async def made(self, scope: Scope, request_id: UUID) -> UUID | None:
        return made_by(self._tables, scope, request_id)

    @override
    async def change(
        self,
        scope: Scope,
        record_id: UUID,
        request: ChangeRequest,
        decide: Callable[[RecordState, str | None], Effect | Refused | None],
    ) -> Made | Refused:
        made = made_by(self._tables, scope, request.request_id)
        if made is not None:
            return Made(made)
        row = self._tables.records[scope, record_id]
        effect = decide(state_of(row), await self._holder_of(scope, request.name, record_id))
        if effect is None:
            return Made(record_id, changed=False)
        if isinstance(effect, Refused):
            return effect
        self._save(scope, row, effect.state)
        if request.found_by is not None:
            behaviour = effect.state.behaviours[effect.state.latest - 1]
            self._describe(scope, behaviour, request.found_by)
            self._list(scope, behaviour)
        return self._note(scope, effect, request.viewer, request.request_id)

    @override
    async def fork(self, source: Located, request: ForkRequest) -> Made | Refused:
        scope, by = request.viewer.scope, request.viewer.principal or ""
        made = made_by(self._tables, scope, request.request_id)
        if made is not None:
            return Made(made)
        record_id, name = ids.record_id(request.request_id), str(request.name)
        holder = await self._holder_of(scope, name, record_id)
        if holder is not None:
            return Refused("conflict", f"{holder}: choose another name")
        behaviour = self._copy(source, scope, keep_listed=True)
        self._list(scope, behaviour)
        version = await self._first_version(scope, record_id, behaviour, by)
        row = RecordRow(record_id, (name,), by, (version,), forked_from=request.forked_from)
        self._tables.records[scope, record_id] = row
        self._tables.names[scope, name] = record_id
        effect = Effect(state_of(row), "forked", 1, {"forked_from": request.forked_from})
        return self._note(scope, effect, request.viewer, request.request_id)

    @override
    async def merge(self, request: MergeRequest) -> Made | Refused:
        scope, by, name = request.viewer.scope, request.viewer.principal or "", str(request.name)
        made = made_by(self._tables, scope, request.request_id)
        if made is not None:
            return Made(made)
        holder = await self._holder_of(scope, name, None)
        refused = merge_refused(holder, self._names.named_record_of(scope, request.behaviour))
        if refused is not None:
            return refused
        row = self._names.name_unnamed(scope, request.behaviour, name, by)
        self._describe(scope, request.behaviour, request.found_by)
        details: JsonObject = {"name": name, "merged_from": [*request.merged_from]}
        effect = Effect(state_of(row), "named", row.latest, details)
        return self._note(scope, effect, request.viewer, request.request_id)

    @override
    async def merged_from(self, viewer: Viewer, scope: Scope, record_id: UUID) -> tuple[str, ...]:
        changes = self._tables.changes.get((scope, record_id), ())
        found = (change.details.get("merged_from") for change in changes)
        return next((tuple(map(str, each)) for each in found if isinstance(each, list)), ())

    @override
    async def adopt(self, source: Located, viewer: Viewer, origin: str) -> UUID:
        scope, by = viewer.scope, viewer.principal or ""
        behaviour = self._copy(source, scope, keep_listed=False)
        if not any(each.capability_id == behaviour for each in self._tables.versions(scope)):
            code_hash = self._tables.behaviours[scope, behaviour].record.code_hash
            names = unnamed_names(code_hash)
            name = first_free(names, [each for where, each in self._tables.names if where == scope])
            record_id = ids.record_id(behaviour)
            version = await self._first_version(scope, record_id, behaviour, by)
            row = RecordRow(record_id, (name,), by, (version,), forked_from=origin)
            self._tables.records[scope, record_id] = row
            self._tables.names[scope, name] = record_id
            self._tables.note(scope, record_id, "created", by, 1, {})
        return behaviour

    async def _first_version(
        self, scope: Scope, record_id: UUID, behaviour: UUID, by: str
    ) -> VersionRow:
        of_version = scope, record_id, 1, behaviour
        signature = await self._tables.signature(self._signing, *of_version)
        now = datetime.now(UTC)
        return VersionRow(behaviour, by, now, signature=signature, signed_at=now)

    @override
    async def unpublished(self, limit: int) -> Sequence[tuple[UUID, CapabilityChanged]]:
        waiting = [*self._tables.unpublished.items()][:limit]
        return [
            (request_id, self._event(scope, record_id, request_id))
            for (scope, request_id), record_id in waiting
        ]

    @override
    async def mark_published(self, requests: Sequence[tuple[Scope, UUID]]) -> None:
        for key in requests:
            self._tables.unpublished.pop(key, None)

    async def _holder_of(
        self, scope: Scope, name: str | None, record_id: UUID | None
    ) -> str | None:
        if name is None:
            return None
        holder = self._names.holder(scope, name)
        is_other = holder is not None and holder.record_id != record_id
        reservation = await self._names.in_the_way(scope, name)
        return holder_text(name, holder if is_other else None, reservation)

    def _describe(self, scope: Scope, behaviour: UUID, found_by: FoundBy) -> None:
        known = self._tables.behaviours[scope, behaviour]
        self._tables.behaviours[scope, behaviour] = replace(known, terms=found_by.terms)
        self._tables.embed_behaviour(scope, behaviour, found_by.embedded)

    def _save(self, scope: Scope, before: RecordRow, after: RecordState) -> None:
        versions = tuple(
            replace(row, tag=version.tag, yanked_reason=version.yanked)
            for row, version in zip(before.versions, after.versions, strict=True)
        )
        self._tables.records[scope, after.record_id] = replace(
            before,
            names=after.names,
            owner=after.owner,
            visibility=after.visibility,
            tags=after.tags,
            versions=versions,
            latest=after.latest,
        )
        for name in after.names:
            self._tables.names[scope, name] = after.record_id

    def _copy(self, source: Located, scope: Scope, *, keep_listed: bool) -> UUID:
        row = self._tables.records[source.scope, source.record_id]
        origin = row.versions[source.version - 1].behaviour
        if source.scope == scope:
            return origin
        known = self._tables.behaviours[source.scope, origin]
        behaviour = ids.capability_id(scope, known.record.code_hash)
        record = known.record.model_copy(
            update={
                "scope": scope,
                "capability_id": behaviour,
                "usage": Usage(),
                "listed": known.record.listed and keep_listed,
            }
        )
        if (scope, behaviour) not in self._tables.behaviours:
            self._tables.behaviours[scope, behaviour] = BehaviourRow(record, known.terms)
            self._tables.copy_vectors((source.scope, origin), (scope, behaviour))
        return behaviour

    def _list(self, scope: Scope, behaviour: UUID) -> None:
        """List a behaviour that has a given name."""
        row = self._tables.behaviours[scope, behaviour]
        record = row.record.model_copy(update={"listed": True})
        self._tables.store((scope, behaviour), replace(row, record=record))

    def _note(self, scope: Scope, effect: Effect, viewer: Viewer, request_id: UUID) -> Made:
        state, by = effect.state, viewer.principal or ""
        about = effect.change, by, effect.version, effect.details, request_id
        self._tables.note(scope, state.record_id, *about)
        self._tables.unpublished[scope, request_id] = state.record_id
        return Made(state.record_id, self._event(scope, state.record_id, request_id))

    def _event(self, scope: Scope, record_id: UUID, request_id: UUID) -> CapabilityChanged:
        rows = self._tables.changes[scope, record_id]
        row = next(row for row in rows if row.request_id == request_id)
        return CapabilityChanged(
            scope=scope,
            event_id=ids.effect_id(request_id, "record-changed"),
            capability_id=row.behaviour,
            name=self._tables.records[scope, record_id].name,
            change=row.change,
            record_id=record_id,
            version=row.version,
            principal=row.principal,
        )
