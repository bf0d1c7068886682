"""Work on an external vector index, in Postgres: noted changes and its rebuild."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg
from typing_extensions import override

from pml_common.contracts.search_index import ReindexState
from pml_common.storage.columns import columns
from pml_common.storage.pool import Connection, Pool, connection, transaction
from pml_common.storage.queries import load_queries
from pml_registry.adapters.postgres_models import stored_model
from pml_registry.adapters.postgres_vectors import FIRST, key_columns, key_of
from pml_registry.ports.vectors import (
    Change,
    IndexTurn,
    IndexWork,
    Point,
    PointKey,
    ReindexRun,
    StoredModel,
)

_SQL = load_queries("pml_registry")
_EXTERNAL = "qdrant"
_AT_ONCE = 5000


class PostgresIndexWork(IndexWork):
    """An advisory lock of the transaction is the turn."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @override
    async def follow(self) -> None:
        async with connection(self._pool) as session:
            if await session.execute(_SQL["still-followed"], _EXTERNAL) != "UPDATE 0":
                return
        async with transaction(self._pool) as session:
            # Writers that began before note nothing: what they wrote is part of the rebuild.
            await session.execute(_SQL["stop-writers"])
            await session.execute(_SQL["follow-vectors"], _EXTERNAL)
            await session.execute(_SQL["forget-indexed"])
            await session.execute(_SQL["begin-reindex"], uuid4(), "pml")

    @override
    async def abandon(self, unused_for_s: float) -> None:
        async with connection(self._pool) as session:
            await session.execute(_SQL["abandon-index"], unused_for_s)
            while await session.execute(_SQL["abandoned-changes"], _AT_ONCE) != "DELETE 0":
                pass

    @override
    @asynccontextmanager
    async def turn(self) -> AsyncGenerator["PostgresIndexTurn | None"]:
        async with transaction(self._pool) as session:
            taken = await session.fetchval(_SQL["take-turn"])
            yield PostgresIndexTurn(session) if taken else None

    @override
    async def pending(self) -> int:
        async with connection(self._pool) as session:
            return await session.fetchval(_SQL["pending-changes"])

    @override
    async def request_run(self, requested_by: str) -> ReindexState:
        async with connection(self._pool) as session:
            await session.execute(_SQL["begin-reindex"], uuid4(), requested_by)
            row = await session.fetchrow(_SQL["last-reindex"])
        if row is None:
            raise LookupError("the rebuild that was begun is gone")
        return _progress(row)

    @override
    async def last_run(self) -> ReindexState | None:
        async with connection(self._pool) as session:
            row = await session.fetchrow(_SQL["last-reindex"])
        return None if row is None else _progress(row)


class PostgresIndexTurn(IndexTurn):
    """Reads and writes in the transaction that has the turn."""

    def __init__(self, session: Connection) -> None:
        self._session = session

    @override
    async def changes(self, limit: int) -> Sequence[Change]:
        rows = await self._session.fetch(_SQL["noted-changes"], limit)
        return [
            Change(
                row["sequence"],
                row["model"],
                key_of(row),
                None if row["vector"] is None else json.loads(row["vector"]),
            )
            for row in rows
        ]

    @override
    async def forget(self, changes: Sequence[Change]) -> None:
        rows = [(each.sequence, each.model, *key_columns(each.key)) for each in changes]
        await self._session.execute(_SQL["forget-changes"], *columns(rows, 6))

    @override
    async def models(self) -> Sequence[StoredModel]:
        rows = await self._session.fetch(_SQL["embedding-models"])
        return [stored_model(row) for row in rows if row["state"] != "retired"]

    @override
    async def set_indexed(self, model: str, *, indexed: bool) -> None:
        await self._session.execute(_SQL["set-indexed"], model, indexed)

    @override
    async def points(self, model: str, after: PointKey | None, limit: int) -> Sequence[Point]:
        start = FIRST if after is None else key_columns(after)
        rows = await self._session.fetch(_SQL["listed-vectors"], model, *start, limit)
        return [Point(key_of(row), json.loads(row["vector"])) for row in rows]

    @override
    async def unknown(self, model: str, keys: Sequence[PointKey]) -> Sequence[PointKey]:
        rows = [key_columns(key) for key in keys]
        found = await self._session.fetch(_SQL["keys-without-vector"], model, *columns(rows, 4))
        return [key_of(row) for row in found]

    @override
    async def count(self, model: str) -> int:
        return await self._session.fetchval(_SQL["count-listed-vectors"], model)

    @override
    async def run(self) -> ReindexRun | None:
        row = await self._session.fetchrow(_SQL["last-reindex"])
        if row is None or row["state"] != "running":
            return None
        at = json.loads(row["position"])
        stored_to = at.get("stored_to")
        return ReindexRun(
            _progress(row),
            at.get("model"),
            None if stored_to is None else PointKey(*stored_to),
            at.get("checking", False),
            at.get("checked_to"),
        )

    @override
    async def begin(self, requested_by: str) -> ReindexRun:
        await self._session.execute(_SQL["begin-reindex"], uuid4(), requested_by)
        run = await self.run()
        if run is None:
            raise LookupError("the rebuild that was begun is gone")
        return run

    @override
    async def save(self, run: ReindexRun) -> None:
        position = {
            "model": run.model,
            "stored_to": None if run.stored_to is None else key_columns(run.stored_to),
            "checking": run.checking,
            "checked_to": run.checked_to,
        }
        state = run.progress
        counted = (state.total, state.stored, state.removed, state.problem)
        await self._session.execute(
            _SQL["save-reindex"], state.run_id, state.state, *counted, json.dumps(position)
        )


def _progress(row: asyncpg.Record) -> ReindexState:
    fields = ReindexState.model_fields
    return ReindexState.model_validate({name: row[name] for name in fields})
