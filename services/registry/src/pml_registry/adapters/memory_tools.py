"""The tool catalog in memory; tested by the same suite as the Postgres store."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition
from pml_common.storage.memory import MemoryInboxEntry
from pml_common.storage.store_transaction import StoreTransaction
from pml_registry.adapters.memory_tables import MemoryTables, tool_key
from pml_registry.domain.documents import tool_terms
from pml_registry.domain.tool_catalog import (
    CatalogUpdate,
    KnownServer,
    KnownTool,
    LearnedOutput,
    with_output,
)
from pml_registry.ports import ToolStore, ToolTransaction
from pml_registry.ports.vectors import Vector


class MemoryToolStore(ToolStore):
    """Tools in shared in-memory tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @override
    @asynccontextmanager
    async def once(
        self, scope: Scope, message_id: UUID, consumer: str
    ) -> AsyncGenerator["MemoryToolTransaction"]:
        async with self._tables.inbox.once(message_id, consumer) as transaction:
            yield MemoryToolTransaction(self._tables, transaction)

    @override
    async def server(self, scope: Scope, server: str) -> KnownServer:
        return _known(self._tables, scope, server)

    @override
    async def tools(self, scope: Scope, server: str | None) -> Sequence[ToolDefinition]:
        own = (
            with_output(tool, self._shape(scope, tool))
            for (its_scope, _), (tool, _) in self._tables.tools.items()
            if its_scope == scope and server in (None, tool.server)
        )
        return sorted(own, key=lambda tool: tool.tool_id)

    @override
    async def quarantined(self, scope: Scope, server: str | None) -> Sequence[QuarantinedTool]:
        own = (
            tool
            for (its_scope, _), held in self._tables.quarantined.items()
            for tool in held
            if its_scope == scope and server in (None, tool.server)
        )
        return sorted(own, key=lambda tool: (tool.server, tool.name))

    def _shape(self, scope: Scope, tool: ToolDefinition) -> JsonObject | None:
        learned = self._tables.outputs.get((scope, tool.tool_id))
        if learned is None or learned.definition_hash != tool.definition_hash:
            return None
        return learned.shape


class MemoryToolTransaction(StoreTransaction[MemoryInboxEntry], ToolTransaction):
    """Stages changes until the message is concluded."""

    def __init__(self, tables: MemoryTables, transaction: MemoryInboxEntry) -> None:
        super().__init__(transaction)
        self._tables = tables

    @override
    async def server(self, scope: Scope, server: str) -> KnownServer:
        return _known(self._tables, scope, server)

    @override
    async def replace(
        self,
        listed: ToolsListed,
        change: CatalogUpdate,
        vectors: Mapping[str, Vector],
        model: str,
        quarantined: Sequence[QuarantinedTool],
    ) -> None:
        saved = {(listed.scope, tool.tool_id): (tool, tool_terms(tool)) for tool in change.saved}
        before = self._tables.listed_at.get((listed.scope, listed.server))
        times = {(listed.scope, listed.server): _later(before, listed.listed_at)}

        def apply() -> None:
            self._tables.tools.update(saved)
            for tool_id in change.redefined:
                self._tables.vectors.pop(tool_key(listed.scope, tool_id), None)
            for tool_id, vector in vectors.items():
                key = tool_key(listed.scope, tool_id)
                self._tables.vectors.setdefault(key, {})[model] = vector
            for tool_id in change.removed:
                del self._tables.tools[listed.scope, tool_id]
                self._tables.vectors.pop(tool_key(listed.scope, tool_id), None)
            self._tables.listed_at.update(times)
            self._tables.quarantined[listed.scope, listed.server] = tuple(quarantined)

        self._transaction.stage(apply)

    @override
    async def outputs(self, scope: Scope, tool_ids: Sequence[str]) -> Mapping[str, LearnedOutput]:
        keys = ((tool_id, (scope, tool_id)) for tool_id in tool_ids)
        known = self._tables.outputs
        return {tool_id: known[key] for tool_id, key in keys if key in known}

    @override
    async def save_outputs(self, scope: Scope, outputs: Mapping[str, LearnedOutput]) -> None:
        rows = {(scope, tool_id): output for tool_id, output in outputs.items()}
        self._transaction.stage(lambda: self._tables.outputs.update(rows))


def _known(tables: MemoryTables, scope: Scope, server: str) -> KnownServer:
    return KnownServer(
        tables.listed_at.get((scope, server)),
        {
            tool_id: KnownTool(
                tool.definition_hash, tuple(tables.vectors.get(tool_key(scope, tool_id), ()))
            )
            for (its_scope, tool_id), (tool, _) in tables.tools.items()
            if its_scope == scope and tool.server == server
        },
        tables.quarantined.get((scope, server), ()),
    )


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((at for at in (one, other) if at is not None), default=None)
