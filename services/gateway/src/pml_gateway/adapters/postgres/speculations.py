"""Runs of guesses in Postgres, schema `gateway`."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_gateway.adapters.postgres.deadline import with_deadline
from pml_gateway.adapters.postgres.rows import from_json
from pml_gateway.domain.api.speculation_threshold import (
    MOST_PER_HOUR,
    MOST_READ,
    Opinion,
    SpeculatedRun,
    hour_of,
)
from pml_gateway.ports import SpeculatedRuns

_SQL = load_queries("pml_gateway")


class PostgresSpeculatedRuns(SpeculatedRuns):
    """Operations that a caller waits for take `patience_s` at most."""

    def __init__(self, pools: ScopedPools, *, patience_s: float = 1.5) -> None:
        self._pools = pools
        self._patience_s = patience_s

    @override
    async def add(self, scope: Scope, workflow_id: UUID, principal: str, at: datetime) -> None:
        key = *scope_columns(scope), workflow_id, storable(principal)
        bound = hour_of(at), MOST_PER_HOUR
        await self._change(scope, "add-speculation", *key, at, *bound)

    @override
    async def judge(self, scope: Scope, workflow_id: UUID, opinion: Opinion) -> None:
        key = *scope_columns(scope), workflow_id, storable(opinion.principal)
        bound = hour_of(opinion.at), MOST_PER_HOUR
        said = opinion.useful, opinion.at
        await self._change(scope, "judge-speculation", *key, *said, *bound)

    async def _change(self, scope: Scope, query: str, *values: object) -> None:
        changing = self._pools.change(scope, _SQL[query], *values)
        await with_deadline(changing, self._patience_s)

    @override
    async def since(self, scope: Scope, at: datetime) -> Sequence[SpeculatedRun]:
        return await with_deadline(self._since(scope, at), self._patience_s)

    async def _since(self, scope: Scope, at: datetime) -> Sequence[SpeculatedRun]:
        where = *scope_columns(scope), at, MOST_READ
        async with self._pools.snapshot(scope) as conn:
            runs = await conn.fetch(_SQL["list-speculations"], *where)
            given = await conn.fetch(_SQL["list-speculation-opinions"], *where)
        opinions = defaultdict[UUID, list[Opinion]](list)
        for row in given:
            opinion = Opinion(row["principal"], row["useful"], row["given_at"])
            opinions[row["workflow_id"]].append(opinion)
        return [
            SpeculatedRun(
                row["workflow_id"],
                row["principal"],
                row["speculated_at"],
                row["state"],
                from_json(WorkflowError, row["error"]),
                tuple(opinions.get(row["workflow_id"], ())),
            )
            for row in runs
        ]

    @override
    async def forget(self, before: datetime) -> None:
        async with self._pools.across() as conn:
            await conn.execute(_SQL["forget-speculations"], before)
