"""Discovery in Postgres: pgvector for meaning, full-text search for words."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.registry import DiscoveryHit
from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.pool import Pool, connection
from pml_common.storage.queries import load_queries, storable
from pml_registry.adapters.postgres_rows import capability_record, tool_definition
from pml_registry.domain.ranking import Candidate, Kind, Ranked
from pml_registry.domain.record_views import discovery_hits
from pml_registry.ports import CandidateStore, Embedded, Vector, VectorIndex

_SQL = load_queries("pml_registry")
_NEAREST: Mapping[Kind, str] = {"tool": "nearest-tools", "capability": "nearest-capabilities"}
_WEIGH: Mapping[Kind, str] = {"tool": "weigh-tools", "capability": "weigh-capabilities"}


class PgvectorIndex(VectorIndex):
    """Searches the stores' own rows, so it is always up to date."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @override
    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[str]:
        async with connection(self._pool) as session:
            rows = await session.fetch(
                _SQL[_NEAREST[kind]], *scope_columns(scope), model, list(vector), limit
            )
        return [row["id"] for row in rows]


class PostgresCandidateStore(CandidateStore):
    """Candidates from the stores' own rows."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @override
    async def candidates(
        self,
        scope: Scope,
        kind: Kind,
        intent: str,
        embedded: Embedded,
        near: Sequence[str],
        limit: int,
    ) -> Sequence[Candidate]:
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

    @override
    async def hits(self, scope: Scope, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        tools = [each.id for each in ranked if each.kind == "tool"]
        capabilities = [UUID(each.id) for each in ranked if each.kind == "capability"]
        where = scope_columns(scope)
        async with connection(self._pool) as session:
            of_tools = await session.fetch(_SQL["tools-by-id"], *where, tools)
            of_capabilities = await session.fetch(_SQL["capabilities-by-id"], *where, capabilities)
        definitions = {row["tool_id"]: tool_definition(row) for row in of_tools}
        records = {str(row["pattern_id"]): capability_record(row) for row in of_capabilities}
        return discovery_hits(ranked, definitions, records)
