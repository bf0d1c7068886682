"""One kind of store behind every port, for suites that run on all kinds."""

from collections.abc import Mapping
from dataclasses import dataclass

from pml_common.contracts.scope import Scope
from pml_common.storage.pool import Pool, connection
from pml_registry.adapters.memory_capabilities import MemoryCapabilityStore
from pml_registry.adapters.memory_discovery import MemoryDiscovery
from pml_registry.adapters.memory_tables import MemoryTables
from pml_registry.adapters.memory_tools import MemoryToolStore
from pml_registry.adapters.postgres_capabilities import PostgresCapabilityStore
from pml_registry.adapters.postgres_discovery import PgvectorIndex, PostgresCandidateStore
from pml_registry.adapters.postgres_tools import PostgresToolStore
from pml_registry.ports import CandidateStore, CapabilityStore, ToolStore, VectorIndex

Edges = Mapping[tuple[str, str, str], tuple[int, str]]
"""Count and source, by both tools and type."""


@dataclass(frozen=True)
class Stores:
    """Everything the handlers need but an embedder."""

    capabilities: CapabilityStore
    tools: ToolStore
    index: VectorIndex
    candidates: CandidateStore
    rows: MemoryTables | Pool

    async def edges(self, scope: Scope) -> Edges:
        """The tool graph of a scope."""
        if isinstance(self.rows, MemoryTables):
            return {key[1:]: row for key, row in self.rows.edges.items() if key[0] == scope}
        async with connection(self.rows) as session:
            rows = await session.fetch(
                "SELECT * FROM tool_dependency WHERE org = $1 AND project = $2",
                scope.org,
                scope.project,
            )
        return {
            (row["from_tool_id"], row["to_tool_id"], row["edge_type"]): (
                row["observed_count"],
                row["edge_source"],
            )
            for row in rows
        }


def memory_stores() -> Stores:
    """Empty in-memory stores."""
    tables = MemoryTables()
    discovery = MemoryDiscovery(tables)
    return Stores(
        MemoryCapabilityStore(tables), MemoryToolStore(tables), discovery, discovery, tables
    )


def postgres_stores(pool: Pool) -> Stores:
    """Stores in Postgres."""
    return Stores(
        PostgresCapabilityStore(pool),
        PostgresToolStore(pool),
        PgvectorIndex(pool),
        PostgresCandidateStore(pool),
        pool,
    )
