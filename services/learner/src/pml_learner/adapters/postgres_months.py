"""Retention of traces in Postgres: a table for each month."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_common.storage.columns import columns, scope_columns, scope_of
from pml_common.storage.pool import Connection, transaction
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_learner.adapters.postgres_learning import positions_of
from pml_learner.domain.lesson import ScopedCapability
from pml_learner.domain.retention import Retention, month_of

_SQL = load_queries("pml_learner")


_ENOUGH = 500
"""Traces of a month that say enough about all to come."""


class PostgresMonths:
    """Makes and drops the tables of months, and deletes old traces from them."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools
        self._months = set[tuple[int, int]]()
        """Months that have a table."""

    async def make_room(self, times: Iterable[float]) -> None:
        found = {month_of(at): at for at in (datetime.fromtimestamp(t / 1e3, UTC) for t in times)}
        for month in sorted(found.keys() - self._months):
            async with transaction(self._pools.batch) as session:
                await session.execute(_SQL["make-month"], found[month].timestamp())
            self._months.add(month)

    async def know_months(self) -> None:
        async with self._pools.across() as session:
            for row in await session.fetch(_SQL["list-unknown-months"], _ENOUGH):
                await session.execute(_SQL["analyze-month"], row["name"])

    def forget_months(self) -> None:
        """Look again which months have a table."""
        self._months.clear()

    async def scopes(self) -> Sequence[Scope]:
        async with self._pools.across() as session:
            return [scope_of(row) for row in await session.fetch(_SQL["list-scopes"])]

    async def old(self, scope: Scope, before: datetime, limit: int) -> Sequence[UUID]:
        key = scope_columns(scope)
        rows = await self._pools.fetch(scope, _SQL["list-old"], *key, before, limit)
        return [row["workflow_id"] for row in rows]

    async def of_principal(
        self, scope: Scope, principal: str, before: datetime, limit: int
    ) -> Sequence[UUID]:
        where = *scope_columns(scope), storable(principal), before, limit
        rows = await self._pools.fetch(scope, _SQL["list-of-principal"], *where)
        return [row["workflow_id"] for row in rows]

    async def drop_opinions(self, scope: Scope, principal: str, before: datetime) -> None:
        key = *scope_columns(scope), storable(principal)
        await self._pools.change(scope, _SQL["drop-opinions"], *key, before)

    async def remove(self, scope: Scope, workflows: Collection[UUID]) -> None:
        key = scope_columns(scope)
        await self._pools.change(scope, _SQL["delete-traces"], *key, list(workflows))

    async def unfolded_of_months(
        self, retention: Retention, now: datetime
    ) -> Mapping[ScopedCapability, int]:
        found: dict[ScopedCapability, int] = {}
        async with self._pools.across() as session:
            months = await session.fetch(_SQL["list-months"], now - retention.default)
            for row in months:
                month = row["begins"], row["ends"]
                if await _is_old(session, retention, now, *month):
                    positions = await session.fetch(_SQL["unfolded-of-month"], *month)
                    for capability, position in positions_of(positions).items():
                        found[capability] = max(position, found.get(capability, 0))
        return found

    async def drop_months(self, retention: Retention, now: datetime) -> None:
        async with self._pools.across() as session:
            names = await session.fetch(_SQL["list-months"], now - retention.default)
        for row in names:
            async with transaction(self._pools.batch) as session:
                await session.execute(_SQL["hurry"])
                await session.execute(_SQL["hold-months"])
                if await _is_old(session, retention, now, row["begins"], row["ends"]):
                    await session.execute(_SQL["drop-month"], row["name"])
        self.forget_months()


async def _is_old(
    session: Connection, retention: Retention, now: datetime, begins: datetime, ends: datetime
) -> bool:
    kept = retention.kept_longer(ends, now)
    rows = [(*scope_columns(scope), since) for scope, since in kept.items()]
    return not await session.fetchval(_SQL["has-young-traces"], *columns(rows, 3), begins, ends)
