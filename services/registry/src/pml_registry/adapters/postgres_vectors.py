"""Vectors in Postgres: written by the stores, searched with pgvector."""

import json
from collections.abc import Sequence

import asyncpg
from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.storage.columns import columns, scope_columns
from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_registry.domain.ranking import Kind
from pml_registry.ports.vectors import (
    Embedded,
    EmbeddingModel,
    Near,
    Point,
    PointKey,
    Vector,
    VectorIndex,
)

_SQL = load_queries("pml_registry")
_AT_ONCE = 5000

FIRST = ("", "", "", "")
"""Columns before those of every key."""


def vector_text(vector: Vector) -> str:
    """Write a vector as pgvector reads it."""
    return json.dumps(list(vector))


def key_columns(key: PointKey) -> tuple[str, str, Kind, str]:
    """Return the columns of a key."""
    return key.org, key.project, key.kind, key.id


def key_of(row: asyncpg.Record) -> PointKey:
    """Parse the columns of a key."""
    return PointKey(row["org"], row["project"], row["kind"], row["id"])


async def put_vectors(session: Connection, model: str, points: Sequence[Point]) -> None:
    """Store vectors of tools and behaviours, which become or stay found as these are listed."""
    rows = [(*key_columns(point.key), vector_text(point.vector)) for point in points]
    if rows:
        await session.execute(_SQL["put-vectors"], *columns(rows, 5), model)


async def put_embedded(
    session: Connection, scope: Scope, behaviour: object, embedded: Embedded
) -> None:
    """Store the vector of a behaviour, if it is embedded."""
    key = PointKey(*scope_columns(scope), "capability", str(behaviour))
    await put_vectors(session, embedded.model, [Point(key, each) for each in embedded.vectors])


class PgvectorIndex(VectorIndex):
    """Searches the vectors that the stores write, so it is always up to date: its own operations
    are on the same rows."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @override
    async def prepare(self, model: EmbeddingModel) -> bool:
        async with self._pools.across() as session:
            return await session.fetchval(_SQL["prepare-vectors"], model.name, model.dimension)

    @override
    async def upsert(self, model: str, points: Sequence[Point]) -> None:
        async with self._pools.across() as session:
            await put_vectors(session, model, points)

    @override
    async def delete(self, model: str, keys: Sequence[PointKey]) -> None:
        rows = [key_columns(key) for key in keys]
        async with self._pools.across() as session:
            await session.execute(_SQL["delete-vectors"], *columns(rows, 4), model)

    @override
    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[Near]:
        asked = *scope_columns(scope), kind, model, list(vector), limit
        rows = await self._pools.fetch(scope, _SQL["nearest-vectors"], *asked)
        return [Near(row["id"], row["cosine"]) for row in rows]

    @override
    async def count(self, model: str) -> int:
        async with self._pools.across() as session:
            return await session.fetchval(_SQL["count-vectors"], model)

    @override
    async def keys(
        self, model: str, after: str | None, limit: int
    ) -> tuple[Sequence[PointKey], str | None]:
        start = FIRST if after is None else json.loads(after)
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["vector-keys"], model, *start, limit)
        found = [key_of(row) for row in rows]
        return found, json.dumps(key_columns(found[-1])) if len(found) == limit else None

    @override
    async def drop(self, model: str) -> None:
        async with self._pools.across() as session:
            await session.execute(_SQL["discard-vectors"], model)
            while await session.execute(_SQL["some-vectors-of"], model, _AT_ONCE) != "DELETE 0":
                pass
