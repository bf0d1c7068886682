"""Capabilities in Postgres, schema `registry`."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.errors import Retryable
from pml_common.storage import inbox
from pml_common.storage.columns import columns, scope_columns
from pml_common.storage.inbox import InboxEntry
from pml_common.storage.pool import Pool, connection, snapshot
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.store_transaction import StoreTransaction
from pml_registry.adapters.postgres_rows import (
    JSON_OBJECT,
    capability_description,
    capability_record,
    learning_columns,
    stored_capability,
)
from pml_registry.domain.admission import Admission
from pml_registry.domain.listing import StoredCapability, newest_of_each
from pml_registry.domain.names import as_id, record_hash
from pml_registry.ports import (
    CapabilityLookup,
    CapabilityStore,
    CapabilityTransaction,
    Embedded,
    LearningOutcome,
)

_SQL = load_queries("pml_registry")

_MAX_ATTEMPTS = 8


class PostgresCapabilityStore(CapabilityStore):
    """Capabilities in Postgres; single-statement writes where possible."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @override
    @asynccontextmanager
    async def once(
        self, message_id: UUID, consumer: str
    ) -> AsyncGenerator["PostgresCapabilityTransaction"]:
        async with inbox.once(self._pool, message_id, consumer) as transaction:
            yield PostgresCapabilityTransaction(transaction)

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
        async with connection(self._pool) as session:
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
        async with connection(self._pool) as session:
            stored = await session.fetch(_SQL["learn-once"], *columns(rows, 13), consumer)
        return {row["message_id"] for row in stored}

    @override
    async def resolve(self, scope: Scope, reference: UUID | str) -> CapabilityRecord | None:
        by_id = isinstance(reference, UUID)
        sql = _SQL["capability-by-id" if by_id else "capability-by-name"]
        key = reference if by_id else storable(str(reference))
        async with connection(self._pool) as session:
            row = await session.fetchrow(sql, *scope_columns(scope), key)
        return None if row is None else capability_record(row)

    @override
    async def set_cache(self, scope: Scope, capability_id: UUID, cache: CacheSettings) -> None:
        key, chosen = (*scope_columns(scope), capability_id), (cache.policy, cache.ttl_s)
        async with connection(self._pool) as session:
            await session.execute(_SQL["set-cache"], *key, *chosen, cache.force)

    @override
    async def describe(
        self, scope: Scope, references: Sequence[str]
    ) -> Mapping[str, CapabilityDescription]:
        names = [storable(reference) for reference in references]
        ids = [as_id(reference) for reference in references]
        async with connection(self._pool) as session:
            rows = await session.fetch(
                _SQL["describe-capabilities"], *scope_columns(scope), names, ids
            )
        return {row["reference"]: capability_description(row) for row in rows}

    @override
    async def names(self, scope: Scope) -> Sequence[str]:
        async with connection(self._pool) as session:
            rows = await session.fetch(_SQL["capability-names"], *scope_columns(scope))
        return [row["name"] for row in rows]

    @override
    async def page(self, query: ListCapabilities) -> CapabilityPage:
        where = (*scope_columns(query.scope), query.include_unlisted)
        async with snapshot(self._pool) as session:
            rows = await session.fetch(_SQL["list-capabilities"], *where, query.limit, query.offset)
            total = await session.fetchval(_SQL["count-capabilities"], *where)
        return CapabilityPage(
            capabilities=tuple(capability_record(row) for row in rows), total=total
        )


def _is_new(found: CapabilityLookup) -> bool:
    """Whether a message was not handled before and its capability exists."""
    return found.replayed is None and found.capability is not None


class PostgresCapabilityTransaction(StoreTransaction[InboxEntry], CapabilityTransaction):
    """Takes advisory locks, because a capability or name that does not exist yet has no row to
    lock."""

    def __init__(self, transaction: InboxEntry) -> None:
        self._transaction = transaction
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
        self, analysis: ExecutionAnalyzed, admission: Admission, embedded: Embedded
    ) -> None:
        identity = analysis.capability
        key = (*scope_columns(analysis.scope), identity.capability_id)
        await self._session.execute(
            _SQL["create-capability"],
            *key,
            storable(admission.description),
            storable(admission.document),
            list(embedded.vectors[0]),
            embedded.model,
            analysis.code,
            identity.code_hash,
            analysis.structure.model_dump_json(by_alias=True),
            JSON_OBJECT.dump_json(analysis.parameters_schema).decode(),
            [storable(tool) for tool in admission.tools_used],
            storable(analysis.principal),
        )
        namespace, action = admission.name.split(":", 1) if admission.named else (None, None)
        await self._session.execute(_SQL["keep-former-name"], *key, admission.name)
        await self._session.execute(
            _SQL["name-capability"],
            *key,
            admission.name,
            namespace,
            action,
            record_hash(admission.name, identity.code_hash),
        )
