"""The tool catalogue and the tool graph in Postgres, schema `registry`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from pml_common.contracts.base import Message
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.learner import ObservedEdge
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.storage import inbox
from pml_common.storage.columns import scope_columns
from pml_common.storage.inbox import Once
from pml_common.storage.pool import Pool, connection
from pml_common.storage.queries import load_queries
from pml_common.storage.text import storable
from pml_registry.adapters.postgres_rows import known_tools, tool_definition
from pml_registry.domain.catalogue import CatalogueChange, KnownServer
from pml_registry.domain.documents import tool_document
from pml_registry.ports import Vector

_SQL = load_queries("pml_registry")


class PostgresToolStore:
    """See `ports.ToolStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def once(self, message_id: UUID, consumer: str) -> AsyncGenerator["PostgresToolHandling"]:
        """See `ports.ToolStore`."""
        async with inbox.once(self._pool, message_id, consumer) as handling:
            yield PostgresToolHandling(handling)

    async def server(self, scope: Scope, server: str) -> KnownServer:
        """See `ports.ToolStore`."""
        key = (*scope_columns(scope), server)
        async with connection(self._pool) as session:
            listed_at = await session.fetchval(_SQL["server-listed-at"], *key)
            rows = await session.fetch(_SQL["server-tools"], *key)
        return KnownServer(listed_at, known_tools(rows))

    async def tools(self, scope: Scope, server: str | None) -> Sequence[ToolDefinition]:
        """See `ports.ToolStore`."""
        async with connection(self._pool) as session:
            rows = await session.fetch(_SQL["list-tools"], *scope_columns(scope), server)
        return [tool_definition(row) for row in rows]


class PostgresToolHandling:
    """See `ports.ToolHandling`; a transaction that holds the server's row."""

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

    async def server(self, scope: Scope, server: str) -> KnownServer:
        """See `ports.ToolHandling`."""
        key = (*scope_columns(scope), server)
        await self._session.execute(_SQL["meet-server"], *key)
        listed_at = await self._session.fetchval(_SQL["lock-server"], *key)
        rows = await self._session.fetch(_SQL["server-tools"], *key)
        return KnownServer(listed_at, known_tools(rows))

    async def replace(
        self,
        listed: ToolsListed,
        change: CatalogueChange,
        vectors: Mapping[str, Vector],
        model: str,
    ) -> None:
        """See `ports.ToolHandling`."""
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

    async def count_edges(
        self, scope: Scope, edges: Sequence[ObservedEdge], observed_from: int
    ) -> None:
        """See `ports.ToolHandling`."""
        rows = [
            (
                *scope_columns(scope),
                edge.from_tool,
                edge.to_tool,
                edge.type,
                edge.count,
                observed_from,
            )
            for edge in edges
        ]
        await self._session.executemany(_SQL["count-edge"], rows)
