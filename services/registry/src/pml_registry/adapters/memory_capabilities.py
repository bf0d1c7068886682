"""Capabilities in memory; tested by the same suite as the Postgres store."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CachePolicy, CacheSettings
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.contracts.source import FromCode
from pml_common.storage.memory import MemoryInboxEntry
from pml_common.storage.store_transaction import StoreTransaction
from pml_registry.adapters.memory_tables import (
    BehaviourRow,
    EdgeRow,
    MemoryTables,
    RecordRow,
    VersionRow,
)
from pml_registry.domain.admission import Admission
from pml_registry.domain.dependencies import STATED_CONFIDENCE, direct_calls
from pml_registry.domain.listing import StoredCapability, newest_of_each
from pml_registry.domain.names import as_id, resolve_reference
from pml_registry.domain.orders import MOST_USED
from pml_registry.domain.record_views import description_of
from pml_registry.domain.signatures import version_in
from pml_registry.domain.versions import Version
from pml_registry.domain.visibility import Viewer, sees
from pml_registry.ports import (
    CapabilityLookup,
    CapabilityStore,
    CapabilityTransaction,
    CodeShape,
    Described,
    LearningOutcome,
    VersionSigning,
)
from pml_registry.ports.vectors import Embedded


class MemoryCapabilityStore(CapabilityStore):
    """Capabilities in shared in-memory tables."""

    def __init__(self, tables: MemoryTables, signing: VersionSigning) -> None:
        self._tables = tables
        self._signing = signing

    @override
    @asynccontextmanager
    async def once(
        self, scope: Scope, message_id: UUID, consumer: str
    ) -> AsyncGenerator["MemoryCapabilityTransaction"]:
        async with self._tables.inbox.once(message_id, consumer) as transaction:
            yield MemoryCapabilityTransaction(self._tables, transaction, self._signing)

    @override
    async def look_up(
        self, analyses: Sequence[ExecutionAnalyzed], consumer: str
    ) -> Sequence[CapabilityLookup]:
        found: list[CapabilityLookup] = []
        for analysis in analyses:
            replayed = self._tables.inbox.facts_of(analysis.event_id, consumer)
            known = self._tables.stored(analysis.scope, analysis.capability.capability_id)
            found.append(CapabilityLookup(replayed, known))
        return found

    @override
    async def apply_learning(
        self,
        updates: Sequence[LearningUpdated],
        consumer: str,
        learn: Callable[[LearningUpdated, StoredCapability], LearningOutcome],
    ) -> Mapping[UUID, Sequence[Message] | None]:
        facts: dict[UUID, Sequence[Message] | None] = {}
        new: list[LearningUpdated] = []
        for update in updates:
            replayed = self._tables.inbox.facts_of(update.event_id, consumer)
            known = (update.scope, update.capability_id) in self._tables.behaviours
            facts[update.event_id] = replayed if replayed is not None or not known else ()
            new += [update] if known and replayed is None else []
        for update in newest_of_each(new):
            facts[update.event_id] = await self._learn(update, consumer, learn)
        return facts

    async def _learn(
        self,
        updated: LearningUpdated,
        consumer: str,
        learn: Callable[[LearningUpdated, StoredCapability], LearningOutcome],
    ) -> Sequence[Message]:
        async with self._tables.inbox.once(updated.event_id, consumer) as transaction:
            if transaction.replayed is not None:
                return transaction.replayed
            key = (updated.scope, updated.capability_id)
            row, before = self._tables.behaviours[key], self._tables.stored(*key)
            outcome = None if before is None else learn(updated, before)
            if outcome is None:
                return ()
            listing, messages = outcome
            record = row.record.model_copy(
                update={
                    "usage": updated.usage,
                    "learning": updated.learning,
                    "listed": listing.listed,
                    "health": listing.health,
                    "updated_at": datetime.now(UTC),
                }
            )
            changed = replace(row, record=record, learning_revision=updated.revision)
            transaction.stage(lambda: self._tables.store(key, changed))
            return transaction.conclude(messages)

    @override
    async def versions(self, viewer: Viewer, scope: Scope, record_id: UUID) -> Sequence[Version]:
        return self._tables.numbered(scope, self._tables.records[scope, record_id])

    @override
    async def at(
        self, viewer: Viewer, scope: Scope, record_id: UUID, number: int
    ) -> CapabilityRecord:
        every = self._tables.versions(scope)
        wanted = (each for each in every if (each.record_id, each.version) == (record_id, number))
        return next(wanted)

    @override
    async def set_cache(self, scope: Scope, record_id: UUID, cache: CacheSettings) -> None:
        row, chosen = self._tables.records[scope, record_id], cache.model_dump()
        before = row.cache
        if before != CachePolicy(**chosen, revision=before.revision):
            after = CachePolicy(**chosen, revision=before.revision + 1)
            self._tables.records[scope, record_id] = replace(row, cache=after)

    @override
    async def describe(self, viewer: Viewer, references: Sequence[str]) -> Mapping[str, Described]:
        scope = viewer.scope
        latest = {each.record_id: each for each in self._tables.latest(scope)}
        of_code = {each.capability_id: each for each in reversed([*self._tables.versions(scope)])}
        of_name = {
            name: latest[record_id]
            for (its_scope, name), record_id in self._tables.names.items()
            if its_scope == scope
        }
        named = [(name, record.capability_id) for name, record in of_name.items()]
        found: dict[str, Described] = {}
        for reference in references:
            id_ = as_id(reference)
            name = resolve_reference(reference, named)
            by_id = None if id_ is None else of_code.get(id_) or latest.get(id_)
            record = by_id or (None if name is None else of_name[name])
            if record is not None and sees(viewer, scope, record.visibility, record.owner):
                found[reference] = Described(
                    description_of(record),
                    version_in(record),
                    record.usage,
                    record.health,
                    record.last_good,
                )
        return found

    @override
    async def names(self, viewer: Viewer) -> Sequence[str]:
        return [
            record.name
            for record in self._records(viewer.scope)
            if sees(viewer, viewer.scope, record.visibility, record.owner)
        ]

    @override
    async def page(self, query: ListCapabilities) -> CapabilityPage:
        viewer = Viewer(query.scope, query.principal)
        shown = [
            record
            for record in self._records(query.scope)
            if (record.listed or query.include_unlisted)
            and sees(viewer, query.scope, record.visibility, record.owner)
        ]
        page, following = MOST_USED.sliced(shown, query.cursor, query.offset, query.limit)
        return CapabilityPage(capabilities=page, total=len(shown), next_cursor=following)

    def _records(self, scope: Scope) -> Sequence[CapabilityRecord]:
        records = self._tables.latest(scope)
        return sorted(records, key=MOST_USED.place)


class MemoryCapabilityTransaction(StoreTransaction[MemoryInboxEntry], CapabilityTransaction):
    """Stages changes until the message is concluded."""

    def __init__(
        self, tables: MemoryTables, transaction: MemoryInboxEntry, signing: VersionSigning
    ) -> None:
        super().__init__(transaction)
        self._tables = tables
        self._signing = signing

    @override
    async def capability(self, scope: Scope, capability_id: UUID) -> StoredCapability | None:
        return self._tables.stored(scope, capability_id)

    @override
    async def taken(self, scope: Scope, names: Sequence[str]) -> Sequence[str]:
        return [name for name in names if (scope, name) in self._tables.names]

    @override
    async def admit(
        self,
        analysis: ExecutionAnalyzed,
        admission: Admission,
        embedded: Embedded,
        shape: CodeShape | None,
    ) -> None:
        scope, behaviour = analysis.scope, analysis.capability.capability_id
        known = self._tables.behaviours.get((scope, behaviour))
        record = _created(analysis, admission) if known is None else known.record
        terms = admission.terms(analysis.parameters_schema)
        described = {"description": admission.description, "updated_at": datetime.now(UTC)}
        described_as = record.model_copy(update=described)
        if known is None:
            row = BehaviourRow(described_as, terms, shape=shape)
        else:
            row = replace(known, record=described_as, terms=terms)
        self._transaction.stage(lambda: self._tables.behaviours.update({(scope, behaviour): row}))
        self._transaction.stage(lambda: self._tables.embed_behaviour(scope, behaviour, embedded))
        if known is None:
            version = VersionRow(
                behaviour,
                analysis.principal,
                record.created_at,
                signature=await self._signing.sign(version_in(record).statement),
                signed_at=record.created_at,
            )
            made = RecordRow(record.record_id, (admission.name,), record.owner, (version,))
            key = scope, record.record_id
            named = {(scope, admission.name): record.record_id}
            self._transaction.stage(lambda: self._tables.records.update({key: made}))
            self._transaction.stage(lambda: self._tables.names.update(named))
            self._transaction.stage(
                lambda: self._tables.note(*key, "created", analysis.principal, 1, {})
            )
        self._transaction.stage(lambda: self._note_calls(scope, behaviour, analysis))

    def _note_calls(self, scope: Scope, behaviour: UUID, analysis: ExecutionAnalyzed) -> None:
        for called in direct_calls(analysis.structure):
            if called != behaviour and (scope, called) in self._tables.behaviours:
                row = self._tables.dependencies.setdefault(
                    (scope, behaviour, called, "contains"),
                    EdgeRow.stated("inferred", STATED_CONFIDENCE),
                )
                kept = row.kept(STATED_CONFIDENCE)
                self._tables.dependencies[scope, behaviour, called, "contains"] = kept


def _created(analysis: ExecutionAnalyzed, admission: Admission) -> CapabilityRecord:
    now = datetime.now(UTC)
    return CapabilityRecord(
        record_id=ids.record_id(analysis.event_id),
        owner=analysis.principal,
        capability_id=analysis.capability.capability_id,
        scope=analysis.scope,
        fqdn=admission.name,
        name=admission.name,
        named=False,
        listed=False,
        code=analysis.code,
        code_hash=analysis.capability.code_hash,
        source=analysis.source or FromCode(),
        description=admission.description,
        parameters_schema=analysis.parameters_schema,
        structure=analysis.structure,
        tools_used=admission.tools_used,
        created_by=analysis.principal,
        created_at=now,
        updated_at=now,
    )
