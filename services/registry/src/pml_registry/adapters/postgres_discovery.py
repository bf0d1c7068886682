"""Discovery in Postgres: pgvector finds by meaning, full-text search by words."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from pml_common.contracts.registry import DiscoveryHit
from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.pool import Pool, connection
from pml_common.storage.queries import load_queries
from pml_common.storage.text import storable
from pml_registry.adapters.postgres_rows import capability_record, tool_definition
from pml_registry.domain.discovery_results import discovery_hits
from pml_registry.domain.ranking import Candidate, Kind, Ranked
from pml_registry.ports import Embedded, Vector

_SQL = load_queries("pml_registry")
_NEAREST: Mapping[Kind, str] = {"tool": "nearest-tools", "capability": "nearest-capabilities"}
_WEIGH: Mapping[Kind, str] = {"tool": "weigh-tools", "capability": "weigh-capabilities"}


class PgvectorIndex:
    """See `ports.VectorIndex`; reads the stores' own rows, so it never lags."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[str]:
        """See `ports.VectorIndex`."""
        async with connection(self._pool) as session:
            rows = await session.fetch(
                _SQL[_NEAREST[kind]], *scope_columns(scope), model, list(vector), limit
            )
        return [row["id"] for row in rows]


class PostgresEvidence:
    """See `ports.Evidence`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def weigh(
        self,
        scope: Scope,
        kind: Kind,
        intent: str,
        embedded: Embedded,
        near: Sequence[str],
        limit: int,
    ) -> Sequence[Candidate]:
        """See `ports.Evidence`."""
        async with connection(self._pool) as session:
            rows = await session.fetch(
                _SQL[_WEIGH[kind]],
                *scope_columns(scope),
                list(near),
                storable(intent),
                embedded.model,
                list(embedded.vectors[0]),
                limit,
            )
        return [Candidate(kind, row["id"], row["cosine"], row["coverage"]) for row in rows]

    async def hits(self, scope: Scope, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        """See `ports.Evidence`."""
        tools = [found.id for found in ranked if found.kind == "tool"]
        capabilities = [UUID(found.id) for found in ranked if found.kind == "capability"]
        where = scope_columns(scope)
        async with connection(self._pool) as session:
            of_tools = await session.fetch(_SQL["tools-by-id"], *where, tools)
            of_capabilities = await session.fetch(_SQL["capabilities-by-id"], *where, capabilities)
        definitions = {row["tool_id"]: tool_definition(row) for row in of_tools}
        records = {str(row["pattern_id"]): capability_record(row) for row in of_capabilities}
        return discovery_hits(ranked, definitions, records)
