"""Capabilities in memory; tested by the same suite as the Postgres store."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CachePolicy, CacheSettings
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.storage.memory import MemoryInboxEntry
from pml_common.storage.store_transaction import StoreTransaction
from pml_registry.adapters.memory_tables import CapabilityRow, MemoryTables, SearchEntry
from pml_registry.domain.admission import Admission
from pml_registry.domain.listing import StoredCapability, newest_of_each
from pml_registry.domain.names import resolve_reference
from pml_registry.domain.record_views import description_of
from pml_registry.ports import (
    CapabilityLookup,
    CapabilityStore,
    CapabilityTransaction,
    Embedded,
    LearningOutcome,
)


class MemoryCapabilityStore(CapabilityStore):
    """Capabilities in shared in-memory tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @override
    @asynccontextmanager
    async def once(
        self, message_id: UUID, consumer: str
    ) -> AsyncGenerator["MemoryCapabilityTransaction"]:
        async with self._tables.inbox.once(message_id, consumer) as transaction:
            yield MemoryCapabilityTransaction(self._tables, transaction)

    @override
    async def look_up(
        self, analyses: Sequence[ExecutionAnalyzed], consumer: str
    ) -> Sequence[CapabilityLookup]:
        found: list[CapabilityLookup] = []
        for analysis in analyses:
            key = (analysis.scope, analysis.capability.capability_id)
            known = self._tables.capabilities.get(key)
            replayed = self._tables.inbox.facts_of(analysis.event_id, consumer)
            found.append(CapabilityLookup(replayed, known[0].stored if known else None))
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
            known = (update.scope, update.capability_id) in self._tables.capabilities
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
            row, entry = self._tables.capabilities[key]
            outcome = learn(updated, row.stored)
            if outcome is None:
                return ()
            listing, messages = outcome
            record = row.record.model_copy(
                update={
                    "usage": updated.usage,
                    "learning": updated.learning,
                    "listed": listing.listed,
                    "updated_at": datetime.now(UTC),
                }
            )
            changed = (CapabilityRow(record, updated.revision), entry)
            transaction.stage(lambda: self._tables.capabilities.update({key: changed}))
            return transaction.conclude(messages)

    @override
    async def resolve(self, scope: Scope, reference: UUID | str) -> CapabilityRecord | None:
        by_name = isinstance(reference, str)
        key = self._tables.names.get((scope, reference)) if by_name else reference
        known = None if key is None else self._tables.capabilities.get((scope, key))
        return None if known is None else known[0].record

    @override
    async def set_cache(self, scope: Scope, capability_id: UUID, cache: CacheSettings) -> None:
        row, entry = self._tables.capabilities[scope, capability_id]
        before, chosen = row.record.cache, cache.model_dump()
        if before == CachePolicy(**chosen, revision=before.revision):
            return
        after = CachePolicy(**chosen, revision=before.revision + 1)
        record = row.record.model_copy(update={"cache": after})
        self._tables.capabilities[scope, capability_id] = (replace(row, record=record), entry)

    @override
    async def describe(
        self, scope: Scope, references: Sequence[str]
    ) -> Mapping[str, CapabilityDescription]:
        named = [
            (name, key)
            for (its_scope, name), key in self._tables.names.items()
            if its_scope == scope
        ]
        resolved = {reference: resolve_reference(reference, named) for reference in references}
        return {
            reference: description_of(self._tables.capabilities[scope, key][0].record)
            for reference, key in resolved.items()
            if key is not None
        }

    @override
    async def names(self, scope: Scope) -> Sequence[str]:
        return [record.name for record in self._records(scope)]

    @override
    async def page(self, query: ListCapabilities) -> CapabilityPage:
        every = self._records(query.scope)
        shown = [record for record in every if record.listed or query.include_unlisted]
        page = shown[query.offset : query.offset + query.limit]
        return CapabilityPage(capabilities=tuple(page), total=len(shown))

    def _records(self, scope: Scope) -> Sequence[CapabilityRecord]:
        own = (
            row.record
            for (its_scope, _), (row, _) in self._tables.capabilities.items()
            if its_scope == scope
        )
        return sorted(own, key=lambda record: (-record.usage.count, record.name))


class MemoryCapabilityTransaction(StoreTransaction[MemoryInboxEntry], CapabilityTransaction):
    """Stages changes until the message is concluded."""

    def __init__(self, tables: MemoryTables, transaction: MemoryInboxEntry) -> None:
        super().__init__(transaction)
        self._tables = tables

    @override
    async def capability(self, scope: Scope, capability_id: UUID) -> StoredCapability | None:
        known = self._tables.capabilities.get((scope, capability_id))
        return None if known is None else known[0].stored

    @override
    async def taken(self, scope: Scope, names: Sequence[str]) -> Sequence[str]:
        return [name for name in names if (scope, name) in self._tables.names]

    @override
    async def admit(
        self, analysis: ExecutionAnalyzed, admission: Admission, embedded: Embedded
    ) -> None:
        key = (analysis.scope, analysis.capability.capability_id)
        known = self._tables.capabilities.get(key)
        row = known[0] if known else CapabilityRow(_created(analysis, admission))
        completed = row.record.model_copy(
            update={
                "name": admission.name,
                "aliases": _aliases(row.record, admission.name),
                "named": admission.named,
                "description": admission.description,
                "updated_at": datetime.now(UTC),
            }
        )
        changed = (
            replace(row, record=completed),
            SearchEntry(admission.document, embedded.model, embedded.vectors[0]),
        )
        named = {(analysis.scope, admission.name): completed.capability_id}
        self._transaction.stage(lambda: self._tables.capabilities.update({key: changed}))
        self._transaction.stage(lambda: self._tables.names.update(named))


def _aliases(record: CapabilityRecord, name: str) -> tuple[str, ...]:
    former = {record.name} - {name}
    return tuple(sorted({*record.aliases, *former}))


def _created(analysis: ExecutionAnalyzed, admission: Admission) -> CapabilityRecord:
    now = datetime.now(UTC)
    return CapabilityRecord(
        capability_id=analysis.capability.capability_id,
        scope=analysis.scope,
        name=admission.name,
        named=admission.named,
        listed=False,
        code=analysis.code,
        code_hash=analysis.capability.code_hash,
        description=admission.description,
        parameters_schema=analysis.parameters_schema,
        structure=analysis.structure,
        tools_used=admission.tools_used,
        created_by=analysis.principal,
        created_at=now,
        updated_at=now,
    )
