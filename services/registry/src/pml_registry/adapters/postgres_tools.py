"""The tool catalog and the tool graph in Postgres, schema `registry`."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import QuarantinedTool, ToolDefinition
from pml_common.storage import inbox
from pml_common.storage.columns import scope_columns
from pml_common.storage.inbox import InboxEntry
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_common.storage.store_transaction import StoreTransaction
from pml_registry.adapters.postgres_rows import (
    JSON_OBJECT,
    QUARANTINED,
    known_tools,
    learned_outputs,
    listed_tool,
    quarantined_tools,
)
from pml_registry.adapters.postgres_vectors import put_vectors
from pml_registry.domain.documents import tool_document, tool_terms
from pml_registry.domain.tool_catalog import CatalogUpdate, KnownServer, LearnedOutput
from pml_registry.ports import ToolStore, ToolTransaction
from pml_registry.ports.vectors import Point, PointKey, Vector

_SQL = load_queries("pml_registry")


class PostgresToolStore(ToolStore):
    """Tools and their graph in Postgres."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @override
    @asynccontextmanager
    async def once(
        self, scope: Scope, message_id: UUID, consumer: str
    ) -> AsyncGenerator["PostgresToolTransaction"]:
        opened = self._pools.transaction(scope)
        async with inbox.once_in(opened, message_id, consumer) as transaction:
            yield PostgresToolTransaction(transaction)

    @override
    async def server(self, scope: Scope, server: str) -> KnownServer:
        key = (*scope_columns(scope), server)
        async with self._pools.snapshot(scope) as session:
            listed_at = await session.fetchval(_SQL["server-listed-at"], *key)
            rows = await session.fetch(_SQL["server-tools"], *key)
            held = await session.fetch(_SQL["server-quarantine"], *key)
        return KnownServer(listed_at, known_tools(rows), tuple(quarantined_tools(held)))

    @override
    async def tools(self, scope: Scope, server: str | None) -> Sequence[ToolDefinition]:
        asked = *scope_columns(scope), server
        rows = await self._pools.fetch(scope, _SQL["list-tools"], *asked)
        return [listed_tool(row) for row in rows]

    @override
    async def quarantined(self, scope: Scope, server: str | None) -> Sequence[QuarantinedTool]:
        asked = *scope_columns(scope), server
        rows = await self._pools.fetch(scope, _SQL["list-quarantined"], *asked)
        return quarantined_tools(rows)


class PostgresToolTransaction(StoreTransaction, ToolTransaction):
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
        held = await self._session.fetch(_SQL["server-quarantine"], *key)
        return KnownServer(listed_at, known_tools(rows), tuple(quarantined_tools(held)))

    @override
    async def replace(
        self,
        listed: ToolsListed,
        change: CatalogUpdate,
        vectors: Mapping[str, Vector],
        model: str,
        quarantined: Sequence[QuarantinedTool],
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
                json.dumps(tool_terms(tool)),
            )
            for tool in change.saved
        ]
        await self._session.executemany(_SQL["save-tool"], rows)
        await self._session.execute(_SQL["remove-tools"], *scope, list(change.removed))
        points = [
            Point(PointKey(*scope, "tool", tool.tool_id), vectors[tool.tool_id])
            for tool in change.saved
            if tool.tool_id in vectors
        ]
        await put_vectors(self._session, model, points)
        held = QUARANTINED.dump_json(tuple(quarantined)).decode()
        await self._session.execute(
            _SQL["note-listing"], *scope, listed.server, listed.listed_at, held
        )

    @override
    async def outputs(self, scope: Scope, tool_ids: Sequence[str]) -> Mapping[str, LearnedOutput]:
        key = (*scope_columns(scope), list(tool_ids))
        return learned_outputs(await self._session.fetch(_SQL["tool-outputs"], *key))

    @override
    async def save_outputs(self, scope: Scope, outputs: Mapping[str, LearnedOutput]) -> None:
        rows = [
            (
                *scope_columns(scope),
                tool_id,
                output.definition_hash,
                JSON_OBJECT.dump_json(output.shape).decode(),
            )
            for tool_id, output in outputs.items()
        ]
        await self._session.executemany(_SQL["save-output"], rows)
