"""The tool catalog and the tool graph in Postgres, schema `registry`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.storage import inbox
from pml_common.storage.columns import columns, scope_columns
from pml_common.storage.inbox import InboxEntry
from pml_common.storage.pool import Pool, connection
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.store_transaction import StoreTransaction
from pml_registry.adapters.postgres_rows import known_tools, tool_definition
from pml_registry.domain.documents import tool_document
from pml_registry.domain.tool_catalog import CatalogUpdate, KnownServer, ShownEdge
from pml_registry.ports import ToolStore, ToolTransaction, Vector

_SQL = load_queries("pml_registry")


class PostgresToolStore(ToolStore):
    """Tools and their graph in Postgres."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @override
    @asynccontextmanager
    async def once(
        self, message_id: UUID, consumer: str
    ) -> AsyncGenerator["PostgresToolTransaction"]:
        async with inbox.once(self._pool, message_id, consumer) as transaction:
            yield PostgresToolTransaction(transaction)

    @override
    async def count_edges(
        self, shown: Sequence[ShownEdge], consumer: str, observed_from: int
    ) -> None:
        rows = [
            (
                each.message_id,
                *scope_columns(each.scope),
                each.edge.from_tool,
                each.edge.to_tool,
                each.edge.type,
                each.edge.count,
            )
            for each in shown
        ]
        async with connection(self._pool) as session:
            await session.execute(_SQL["count-edges"], *columns(rows, 7), consumer, observed_from)

    @override
    async def server(self, scope: Scope, server: str) -> KnownServer:
        key = (*scope_columns(scope), server)
        async with connection(self._pool) as session:
            listed_at = await session.fetchval(_SQL["server-listed-at"], *key)
            rows = await session.fetch(_SQL["server-tools"], *key)
        return KnownServer(listed_at, known_tools(rows))

    @override
    async def tools(self, scope: Scope, server: str | None) -> Sequence[ToolDefinition]:
        async with connection(self._pool) as session:
            rows = await session.fetch(_SQL["list-tools"], *scope_columns(scope), server)
        return [tool_definition(row) for row in rows]


class PostgresToolTransaction(StoreTransaction[InboxEntry], ToolTransaction):
    """Locks the server's row."""

    def __init__(self, transaction: InboxEntry) -> None:
        self._transaction = transaction
        self._session = transaction.connection

    @override
    async def server(self, scope: Scope, server: str) -> KnownServer:
        key = (*scope_columns(scope), server)
        await self._session.execute(_SQL["meet-server"], *key)
        listed_at = await self._session.fetchval(_SQL["lock-server"], *key)
        rows = await self._session.fetch(_SQL["server-tools"], *key)
        return KnownServer(listed_at, known_tools(rows))

    @override
    async def replace(
        self,
        listed: ToolsListed,
        change: CatalogUpdate,
        vectors: Mapping[str, Vector],
        model: str,
    ) -> None:
        scope = scope_columns(listed.scope)
        rows = [
            (
                *scope,
                tool.server,
                tool.name,
                tool.model_dump_json(),
                tool.definition_hash,
                storable(tool_document(tool)),
                list(vectors[tool.tool_id]),
                model,
            )
            for tool in change.saved
        ]
        await self._session.executemany(_SQL["save-tool"], rows)
        await self._session.execute(_SQL["remove-tools"], *scope, list(change.removed))
        await self._session.execute(_SQL["note-listing"], *scope, listed.server, listed.listed_at)
