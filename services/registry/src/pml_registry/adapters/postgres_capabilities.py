"""Capabilities in Postgres, schema `registry`."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from typing_extensions import override

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.errors import Retryable
from pml_common.storage import inbox
from pml_common.storage.columns import columns, scope_columns, scope_of
from pml_common.storage.inbox import InboxEntry
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_common.storage.store_transaction import StoreTransaction
from pml_registry.adapters.postgres_rows import (
    JSON_OBJECT,
    behaviour_texts,
    capability_record,
    described,
    learning_columns,
    source_column,
    stored_capability,
    version_of,
)
from pml_registry.adapters.postgres_signatures import sign_version
from pml_registry.adapters.postgres_vectors import put_embedded
from pml_registry.domain.admission import Admission
from pml_registry.domain.dependencies import STATED_CONFIDENCE, direct_calls
from pml_registry.domain.listing import ScopedCapability, StoredCapability, newest_of_each
from pml_registry.domain.names import as_id
from pml_registry.domain.orders import MOST_USED
from pml_registry.domain.versions import Version
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import (
    BehaviourTexts,
    CapabilityLookup,
    CapabilityStore,
    CapabilityTransaction,
    CodeShape,
    Described,
    FoundBy,
    LearningOutcome,
    VersionSigning,
)
from pml_registry.ports.vectors import Embedded

_SQL = load_queries("pml_registry")

_MAX_ATTEMPTS = 8


class PostgresCapabilityStore(CapabilityStore):
    """Capabilities in Postgres; single-statement writes where possible."""

    def __init__(self, pools: ScopedPools, signing: VersionSigning) -> None:
        self._pools = pools
        self._signing = signing

    @override
    @asynccontextmanager
    async def once(
        self, scope: Scope, message_id: UUID, consumer: str
    ) -> AsyncGenerator["PostgresCapabilityTransaction"]:
        opened = self._pools.transaction(scope)
        async with inbox.once_in(opened, message_id, consumer) as transaction:
            yield PostgresCapabilityTransaction(transaction, self._signing)

    @override
    async def look_up(
        self, analyses: Sequence[ExecutionAnalyzed], consumer: str
    ) -> Sequence[CapabilityLookup]:
        keys = [
            (each.event_id, *scope_columns(each.scope), each.capability.capability_id)
            for each in analyses
        ]
        return await self._look_up(keys, consumer)

    async def _look_up(
        self, keys: Sequence[tuple[UUID, str, str, UUID]], consumer: str
    ) -> Sequence[CapabilityLookup]:
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["seen-capabilities"], *columns(keys, 4), consumer)
        return [
            CapabilityLookup(
                None if row["facts"] is None else inbox.decode_facts(row["facts"]),
                None if row["name"] is None else stored_capability(row),
            )
            for row in rows
        ]

    @override
    async def apply_learning(
        self,
        updates: Sequence[LearningUpdated],
        consumer: str,
        learn: Callable[[LearningUpdated, StoredCapability], LearningOutcome],
    ) -> Mapping[UUID, Sequence[Message] | None]:
        # Optimistic concurrency: the second statement applies to capabilities that are unchanged
        # since the first; for the others both are retried.
        facts: dict[UUID, Sequence[Message] | None] = {}
        pending = updates
        for _ in range(_MAX_ATTEMPTS):
            keys = [(u.event_id, *scope_columns(u.scope), u.capability_id) for u in pending]
            found = await self._look_up(keys, consumer)
            seen = {update.event_id: each for update, each in zip(pending, found, strict=True)}
            new = [update for update in pending if _is_new(seen[update.event_id])]
            facts |= {cause: () if _is_new(each) else each.replayed for cause, each in seen.items()}
            outcomes: dict[UUID, Sequence[Message]] = {}
            rows: list[tuple[object, ...]] = []
            for update in newest_of_each(new):
                before = seen[update.event_id].capability
                outcome = None if before is None else learn(update, before)
                if before is not None and outcome is not None:
                    listing, outcomes[update.event_id] = outcome
                    texts = update.event_id, inbox.encode_facts(outcomes[update.event_id])
                    rows.append((*learning_columns(update, listing, before), *texts))
            stored = await self._learn(rows, consumer)
            facts |= {cause: outcomes[cause] for cause in stored}
            pending = [each for each in new if each.event_id in outcomes.keys() - stored]
            if not pending:
                return facts
        raise Retryable("capabilities are changing too often")

    async def _learn(self, rows: Sequence[tuple[object, ...]], consumer: str) -> set[UUID]:
        """Return the messages that took effect."""
        if not rows:
            return set()
        async with self._pools.across() as session:
            stored = await session.fetch(_SQL["learn-once"], *columns(rows, 20), consumer)
        return {row["message_id"] for row in stored}

    @override
    async def undescribed(
        self, capabilities: Sequence[ScopedCapability]
    ) -> Mapping[ScopedCapability, BehaviourTexts]:
        keys = [(*scope_columns(scope), capability_id) for scope, capability_id in capabilities]
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["undescribed"], *columns(keys, 3))
        return {(scope_of(row), row["pattern_id"]): behaviour_texts(row) for row in rows}

    @override
    async def describe_first(
        self, scope: Scope, capability_id: UUID, name: str, found_by: FoundBy
    ) -> None:
        where = scope_columns(scope)
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["lock-names"], *where)
            described = await session.fetchval(
                _SQL["describe-first"],
                *where,
                capability_id,
                storable(found_by.description),
                storable(found_by.document),
                json.dumps(dict(found_by.terms)),
                name,
            )
            if described is not None:
                await put_embedded(session, scope, capability_id, found_by.embedded)

    @override
    async def versions(self, viewer: Viewer, scope: Scope, record_id: UUID) -> Sequence[Version]:
        which = *scope_columns(scope), record_id
        pool = self._pools.over(viewer.scope, scope)
        rows = await pool.fetch(viewer.scope, _SQL["versions-of-record"], *which)
        return [version_of(row) for row in rows]

    @override
    async def at(
        self, viewer: Viewer, scope: Scope, record_id: UUID, number: int
    ) -> CapabilityRecord:
        which = *scope_columns(scope), record_id, number
        pool = self._pools.over(viewer.scope, scope)
        row = await pool.fetchrow(viewer.scope, _SQL["record-at-version"], *which)
        if row is None:
            raise LookupError(f"record {record_id} has no version {number}")
        return capability_record(row)

    @override
    async def set_cache(self, scope: Scope, record_id: UUID, cache: CacheSettings) -> None:
        key, chosen = (*scope_columns(scope), record_id), (cache.policy, cache.ttl_s)
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["set-cache"], *key, *chosen, cache.force)

    @override
    async def describe(self, viewer: Viewer, references: Sequence[str]) -> Mapping[str, Described]:
        names = [storable(reference) for reference in references]
        ids = [as_id(reference) for reference in references]
        rows = await self._pools.fetch(
            viewer.scope,
            _SQL["describe-capabilities"],
            *scope_columns(viewer.scope),
            names,
            ids,
            viewer.principal,
            viewer.is_admin,
        )
        return {row["reference"]: described(row) for row in rows}

    @override
    async def names(self, viewer: Viewer) -> Sequence[str]:
        who = *scope_columns(viewer.scope), viewer.principal, viewer.is_admin
        rows = await self._pools.fetch(viewer.scope, _SQL["capability-names"], *who)
        return [row["name"] for row in rows]

    @override
    async def page(self, query: ListCapabilities) -> CapabilityPage:
        where = (*scope_columns(query.scope), query.include_unlisted, query.principal)
        page = query.limit + 1, query.offset, *(MOST_USED.after(query.cursor) or (None,) * 3)
        async with self._pools.snapshot(query.scope) as session:
            rows = await session.fetch(_SQL["list-capabilities"], *where, *page)
            total = await session.fetchval(_SQL["count-capabilities"], *where)
        records, following = MOST_USED.cut([capability_record(row) for row in rows], query.limit)
        return CapabilityPage(capabilities=records, total=total, next_cursor=following)


def _is_new(found: CapabilityLookup) -> bool:
    """Whether a message was not handled before and its capability exists."""
    return found.replayed is None and found.capability is not None


class PostgresCapabilityTransaction(StoreTransaction, CapabilityTransaction):
    """Takes advisory locks, because a capability or name that does not exist yet has no row to
    lock."""

    def __init__(self, transaction: InboxEntry, signing: VersionSigning) -> None:
        self._transaction = transaction
        self._signing = signing
        self._session = transaction.connection

    @override
    async def capability(self, scope: Scope, capability_id: UUID) -> StoredCapability | None:
        await self._session.execute(_SQL["lock-capability"], str(capability_id))
        row = await self._session.fetchrow(
            _SQL["hold-capability"], *scope_columns(scope), capability_id
        )
        return None if row is None else stored_capability(row)

    @override
    async def taken(self, scope: Scope, names: Sequence[str]) -> Sequence[str]:
        await self._session.execute(_SQL["lock-names"], *scope_columns(scope))
        rows = await self._session.fetch(_SQL["taken-names"], *scope_columns(scope), list(names))
        return [row["name"] for row in rows]

    @override
    async def admit(
        self,
        analysis: ExecutionAnalyzed,
        admission: Admission,
        embedded: Embedded,
        shape: CodeShape | None,
    ) -> None:
        identity = analysis.capability
        key = (*scope_columns(analysis.scope), identity.capability_id)
        await self._session.execute(
            _SQL["create-capability"],
            *key,
            storable(admission.document),
            analysis.code,
            identity.code_hash,
            analysis.structure.model_dump_json(by_alias=True),
            JSON_OBJECT.dump_json(analysis.parameters_schema).decode(),
            [storable(tool) for tool in admission.tools_used],
            storable(analysis.principal),
            json.dumps(admission.terms(analysis.parameters_schema)),
            shape and shape.shape_hash,
            shape and shape.makes_calls,
            source_column(analysis.source),
        )
        await put_embedded(self._session, analysis.scope, identity.capability_id, embedded)
        record = ids.record_id(analysis.event_id), storable(analysis.principal)
        made = await self._session.fetchrow(_SQL["create-record"], *key, *record, admission.name)
        if made is not None:
            version = made["record_id"], made["number"], identity.capability_id
            await sign_version(self._session, self._signing, analysis.scope, *version)
        if called := direct_calls(analysis.structure):
            await self._session.execute(_SQL["note-calls"], *key, called, STATED_CONFIDENCE)
