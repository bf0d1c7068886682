"""Capabilities in memory; the twin of the Postgres store, under the same contract suite."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CachePolicy, CacheSettings
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.storage.memory import MemoryInboxEntry
from pml_registry.adapters.memory_tables import Found, Kept, MemoryTables
from pml_registry.domain.admission import Admission
from pml_registry.domain.descriptions import description_of
from pml_registry.domain.listing import StoredCapability
from pml_registry.domain.names import meant_by
from pml_registry.ports import Embedded, Seen, Taught


class MemoryCapabilityStore:
    """See `ports.CapabilityStore`."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @asynccontextmanager
    async def once(
        self, message_id: UUID, consumer: str
    ) -> AsyncGenerator["MemoryCapabilityHandling"]:
        """See `ports.CapabilityStore`."""
        async with self._tables.inbox.once(message_id, consumer) as handling:
            yield MemoryCapabilityHandling(self._tables, handling)

    async def seen(
        self, message_id: UUID, consumer: str, scope: Scope, capability_id: UUID
    ) -> Seen:
        """See `ports.CapabilityStore`."""
        known = self._tables.capabilities.get((scope, capability_id))
        replayed = self._tables.inbox.facts_of(message_id, consumer)
        return Seen(replayed, known[0].held if known else None)

    async def learn_once(
        self, updated: LearningUpdated, consumer: str, teach: Callable[[StoredCapability], Taught]
    ) -> Sequence[Message] | None:
        """See `ports.CapabilityStore`."""
        key = (updated.scope, updated.capability_id)
        if key not in self._tables.capabilities:
            return None
        async with self._tables.inbox.once(updated.event_id, consumer) as handling:
            if handling.replayed is not None:
                return handling.replayed
            kept, found = self._tables.capabilities[key]
            taught = teach(kept.held)
            if taught is None:
                return ()
            standing, facts = taught
            record = kept.record.model_copy(
                update={
                    "usage": updated.usage,
                    "learning": updated.learning,
                    "listed": standing.listed,
                    "updated_at": datetime.now(UTC),
                }
            )
            row = (Kept(record, updated.revision), found)
            handling.stage(lambda: self._tables.capabilities.update({key: row}))
            return handling.conclude(facts)

    async def resolve(self, scope: Scope, reference: UUID | str) -> CapabilityRecord | None:
        """See `ports.CapabilityStore`."""
        by_name = isinstance(reference, str)
        key = self._tables.names.get((scope, reference)) if by_name else reference
        known = None if key is None else self._tables.capabilities.get((scope, key))
        return None if known is None else known[0].record

    async def set_cache(self, scope: Scope, capability_id: UUID, cache: CacheSettings) -> None:
        """See `ports.CapabilityStore`."""
        held, found = self._tables.capabilities[scope, capability_id]
        before, chosen = held.record.cache, cache.model_dump()
        if before == CachePolicy(**chosen, revision=before.revision):
            return
        after = CachePolicy(**chosen, revision=before.revision + 1)
        record = held.record.model_copy(update={"cache": after})
        self._tables.capabilities[scope, capability_id] = (replace(held, record=record), found)

    async def describe(
        self, scope: Scope, references: Sequence[str]
    ) -> Mapping[str, CapabilityDescription]:
        """See `ports.CapabilityStore`."""
        named = [
            (name, key)
            for (its_scope, name), key in self._tables.names.items()
            if its_scope == scope
        ]
        meant = {reference: meant_by(reference, named) for reference in references}
        return {
            reference: description_of(self._tables.capabilities[scope, key][0].record)
            for reference, key in meant.items()
            if key is not None
        }

    async def names(self, scope: Scope) -> Sequence[str]:
        """See `ports.CapabilityStore`."""
        return [record.name for record in self._records(scope)]

    async def page(self, query: ListCapabilities) -> CapabilityPage:
        """See `ports.CapabilityStore`."""
        every = self._records(query.scope)
        shown = [record for record in every if record.listed or query.include_unlisted]
        page = shown[query.offset : query.offset + query.limit]
        return CapabilityPage(capabilities=tuple(page), total=len(shown))

    def _records(self, scope: Scope) -> Sequence[CapabilityRecord]:
        own = (
            held.record
            for (its_scope, _), (held, _) in self._tables.capabilities.items()
            if its_scope == scope
        )
        return sorted(own, key=lambda record: (-record.usage.count, record.name))


class MemoryCapabilityHandling:
    """See `ports.CapabilityHandling`."""

    def __init__(self, tables: MemoryTables, handling: MemoryInboxEntry) -> None:
        self._tables = tables
        self._handling = handling

    @property
    def replayed(self) -> Sequence[Message] | None:
        """See `ports.Handling`."""
        return self._handling.replayed

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """See `ports.Handling`."""
        return self._handling.conclude(facts)

    async def capability(self, scope: Scope, capability_id: UUID) -> StoredCapability | None:
        """See `ports.CapabilityHandling`."""
        known = self._tables.capabilities.get((scope, capability_id))
        return None if known is None else known[0].held

    async def taken(self, scope: Scope, names: Sequence[str]) -> Sequence[str]:
        """See `ports.CapabilityHandling`."""
        return [name for name in names if (scope, name) in self._tables.names]

    async def admit(
        self, analysis: ExecutionAnalyzed, admission: Admission, embedded: Embedded
    ) -> None:
        """See `ports.CapabilityHandling`."""
        key = (analysis.scope, analysis.capability.capability_id)
        known = self._tables.capabilities.get(key)
        held = known[0] if known else Kept(_created(analysis, admission))
        completed = held.record.model_copy(
            update={
                "name": admission.name,
                "aliases": _aliases(held.record, admission.name),
                "named": admission.named,
                "description": admission.description,
                "updated_at": datetime.now(UTC),
            }
        )
        row = (
            replace(held, record=completed),
            Found(admission.document, embedded.model, embedded.vectors[0]),
        )
        named = {(analysis.scope, admission.name): completed.capability_id}
        self._handling.stage(lambda: self._tables.capabilities.update({key: row}))
        self._handling.stage(lambda: self._tables.names.update(named))


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
