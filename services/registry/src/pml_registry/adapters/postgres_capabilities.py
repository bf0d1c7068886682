"""Capabilities in Postgres, schema `registry`."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.errors import Retryable
from pml_common.storage import inbox
from pml_common.storage.columns import scope_columns
from pml_common.storage.inbox import Once
from pml_common.storage.pool import Pool, connection, snapshot
from pml_common.storage.queries import load_queries
from pml_common.storage.text import storable
from pml_registry.adapters.postgres_rows import (
    JSON_OBJECT,
    capability_description,
    capability_record,
    held,
    learning_columns,
)
from pml_registry.domain.admission import Admission
from pml_registry.domain.listing import StoredCapability
from pml_registry.domain.names import as_id, record_hash
from pml_registry.ports import Embedded, Seen, Taught

_SQL = load_queries("pml_registry")

_MOST_ATTEMPTS = 8


class PostgresCapabilityStore:
    """See `ports.CapabilityStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def once(
        self, message_id: UUID, consumer: str
    ) -> AsyncGenerator["PostgresCapabilityHandling"]:
        """See `ports.CapabilityStore`."""
        async with inbox.once(self._pool, message_id, consumer) as handling:
            yield PostgresCapabilityHandling(handling)

    async def seen(
        self, message_id: UUID, consumer: str, scope: Scope, capability_id: UUID
    ) -> Seen:
        """See `ports.CapabilityStore`."""
        key = (*scope_columns(scope), capability_id)
        async with connection(self._pool) as session:
            row = await session.fetchrow(_SQL["seen-capability"], *key, message_id, consumer)
        if row is None:
            raise LookupError("a row was to be there, whatever there is")
        replayed = None if row["facts"] is None else inbox.decode_facts(row["facts"])
        return Seen(replayed, None if row["name"] is None else held(row))

    async def learn_once(
        self, updated: LearningUpdated, consumer: str, teach: Callable[[StoredCapability], Taught]
    ) -> Sequence[Message] | None:
        """See `ports.CapabilityStore`. Two statements, the second of which counts only if the
        capability is as it was read; else all over again."""
        scope, message_id = updated.scope, updated.event_id
        for _ in range(_MOST_ATTEMPTS):
            seen = await self.seen(message_id, consumer, scope, updated.capability_id)
            if seen.replayed is not None or seen.held is None:
                return seen.replayed
            taught = teach(seen.held)
            if taught is None:
                return ()
            standing, facts = taught
            columns = learning_columns(updated, standing, seen.held)
            async with connection(self._pool) as session:
                kept = await session.fetchval(
                    _SQL["learn-once"], *columns, message_id, consumer, inbox.encode_facts(facts)
                )
            if kept is not None:
                return facts
        raise Retryable(f"capability {updated.capability_id} changes too often just now")

    async def resolve(self, scope: Scope, reference: UUID | str) -> CapabilityRecord | None:
        """See `ports.CapabilityStore`."""
        by_id = isinstance(reference, UUID)
        sql = _SQL["capability-by-id" if by_id else "capability-by-name"]
        key = reference if by_id else storable(str(reference))
        async with connection(self._pool) as session:
            row = await session.fetchrow(sql, *scope_columns(scope), key)
        return None if row is None else capability_record(row)

    async def set_cache(self, scope: Scope, capability_id: UUID, cache: CacheSettings) -> None:
        """See `ports.CapabilityStore`."""
        key, chosen = (*scope_columns(scope), capability_id), (cache.policy, cache.ttl_s)
        async with connection(self._pool) as session:
            await session.execute(_SQL["set-cache"], *key, *chosen, cache.force)

    async def describe(
        self, scope: Scope, references: Sequence[str]
    ) -> Mapping[str, CapabilityDescription]:
        """See `ports.CapabilityStore`."""
        asked = [storable(reference) for reference in references]
        ids = [as_id(reference) for reference in references]
        async with connection(self._pool) as session:
            rows = await session.fetch(
                _SQL["describe-capabilities"], *scope_columns(scope), asked, ids
            )
        return {row["reference"]: capability_description(row) for row in rows}

    async def names(self, scope: Scope) -> Sequence[str]:
        """See `ports.CapabilityStore`."""
        async with connection(self._pool) as session:
            rows = await session.fetch(_SQL["capability-names"], *scope_columns(scope))
        return [row["name"] for row in rows]

    async def page(self, query: ListCapabilities) -> CapabilityPage:
        """See `ports.CapabilityStore`."""
        where = (*scope_columns(query.scope), query.include_unlisted)
        async with snapshot(self._pool) as session:
            rows = await session.fetch(_SQL["list-capabilities"], *where, query.limit, query.offset)
            total = await session.fetchval(_SQL["count-capabilities"], *where)
        return CapabilityPage(
            capabilities=tuple(capability_record(row) for row in rows), total=total
        )


class PostgresCapabilityHandling:
    """See `ports.CapabilityHandling`; a transaction with advisory locks on what it works on,
    because a capability or a name that does not exist yet has no row to lock."""

    def __init__(self, handling: Once) -> None:
        self._handling = handling
        self._session = handling.connection

    @property
    def replayed(self) -> Sequence[Message] | None:
        """See `ports.Handling`."""
        return self._handling.replayed

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """See `ports.Handling`."""
        return self._handling.conclude(facts)

    async def capability(self, scope: Scope, capability_id: UUID) -> StoredCapability | None:
        """See `ports.CapabilityHandling`."""
        await self._session.execute(_SQL["lock-capability"], str(capability_id))
        row = await self._session.fetchrow(
            _SQL["hold-capability"], *scope_columns(scope), capability_id
        )
        return None if row is None else held(row)

    async def taken(self, scope: Scope, names: Sequence[str]) -> Sequence[str]:
        """See `ports.CapabilityHandling`."""
        await self._session.execute(_SQL["lock-names"], *scope_columns(scope))
        rows = await self._session.fetch(_SQL["taken-names"], *scope_columns(scope), list(names))
        return [row["name"] for row in rows]

    async def admit(
        self, analysis: ExecutionAnalyzed, admission: Admission, embedded: Embedded
    ) -> None:
        """See `ports.CapabilityHandling`."""
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
