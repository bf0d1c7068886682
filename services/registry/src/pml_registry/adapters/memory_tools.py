"""The tool catalogue in memory; the twin of the Postgres store, under the same contract suite."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from pml_common.contracts.base import Message
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.learner import ObservedEdge
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.storage.memory import MemoryInboxEntry
from pml_registry.adapters.memory_tables import Found, MemoryTables
from pml_registry.domain.catalogue import CatalogueChange, KnownServer, KnownTool
from pml_registry.domain.documents import tool_document
from pml_registry.ports import Vector


class MemoryToolStore:
    """See `ports.ToolStore`."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @asynccontextmanager
    async def once(self, message_id: UUID, consumer: str) -> AsyncGenerator["MemoryToolHandling"]:
        """See `ports.ToolStore`."""
        async with self._tables.inbox.once(message_id, consumer) as handling:
            yield MemoryToolHandling(self._tables, handling)

    async def server(self, scope: Scope, server: str) -> KnownServer:
        """See `ports.ToolStore`."""
        return _known(self._tables, scope, server)

    async def tools(self, scope: Scope, server: str | None) -> Sequence[ToolDefinition]:
        """See `ports.ToolStore`."""
        own = (
            tool
            for (its_scope, _), (tool, _) in self._tables.tools.items()
            if its_scope == scope and server in (None, tool.server)
        )
        return sorted(own, key=lambda tool: tool.tool_id)


class MemoryToolHandling:
    """See `ports.ToolHandling`."""

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

    async def server(self, scope: Scope, server: str) -> KnownServer:
        """See `ports.ToolHandling`."""
        return _known(self._tables, scope, server)

    async def replace(
        self,
        listed: ToolsListed,
        change: CatalogueChange,
        vectors: Mapping[str, Vector],
        model: str,
    ) -> None:
        """See `ports.ToolHandling`."""
        saved = {
            (listed.scope, tool.tool_id): (
                tool,
                Found(tool_document(tool), model, vectors[tool.tool_id]),
            )
            for tool in change.saved
        }
        before = self._tables.listed_at.get((listed.scope, listed.server))
        noted = {(listed.scope, listed.server): _later(before, listed.listed_at)}

        def apply() -> None:
            self._tables.tools.update(saved)
            for tool_id in change.removed:
                del self._tables.tools[listed.scope, tool_id]
            self._tables.listed_at.update(noted)

        self._handling.stage(apply)

    async def count_edges(
        self, scope: Scope, edges: Sequence[ObservedEdge], observed_from: int
    ) -> None:
        """See `ports.ToolHandling`."""
        rows: dict[tuple[Scope, str, str, str], tuple[int, str]] = {}
        for edge in edges:
            key = (scope, edge.from_tool, edge.to_tool, edge.type)
            count = self._tables.edges.get(key, (0, ""))[0] + edge.count
            rows[key] = (count, "observed" if count >= observed_from else "inferred")
        self._handling.stage(lambda: self._tables.edges.update(rows))


def _known(tables: MemoryTables, scope: Scope, server: str) -> KnownServer:
    return KnownServer(
        tables.listed_at.get((scope, server)),
        {
            tool_id: KnownTool(tool.definition_hash, found.model)
            for (its_scope, tool_id), (tool, found) in tables.tools.items()
            if its_scope == scope and tool.server == server
        },
    )


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((at for at in (one, other) if at is not None), default=None)
