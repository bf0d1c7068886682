"""Cached results without an expiry of the bus, in Postgres, schema `gateway`."""

from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_gateway.adapters.postgres.deadline import with_deadline
from pml_gateway.domain.workflow.result_cache import CachedResult, ResultKey
from pml_gateway.ports import LastingResults

_SQL = load_queries("pml_gateway")


class PostgresResults(LastingResults):
    """Operations that a caller waits for take `patience_s` at most."""

    def __init__(self, pools: ScopedPools, *, patience_s: float = 1.5) -> None:
        self._pools = pools
        self._patience_s = patience_s

    @override
    async def find(self, key: ResultKey) -> CachedResult | None:
        return await with_deadline(self._find(key), self._patience_s)

    async def _find(self, key: ResultKey) -> CachedResult | None:
        row = await self._pools.fetchrow(key.scope, _SQL["find-result"], *_columns(key))
        return None if row is None else CachedResult(row["workflow_id"], row["expires_at"])

    @override
    async def keep(self, key: ResultKey, kept: CachedResult) -> None:
        await with_deadline(self._keep(key, kept), self._patience_s)

    async def _keep(self, key: ResultKey, kept: CachedResult) -> None:
        columns = (*_columns(key), kept.workflow_id, kept.expires_at)
        await self._pools.change(key.scope, _SQL["keep-result"], *columns)

    @override
    async def drop(self, scope: Scope, capability_id: UUID, but_revision: int) -> None:
        columns = *scope_columns(scope), capability_id, but_revision
        await self._pools.change(scope, _SQL["drop-results"], *columns)

    @override
    async def forget(self, now: datetime) -> None:
        async with self._pools.across() as conn:
            await conn.execute(_SQL["forget-results"], now)


def _columns(key: ResultKey) -> tuple[str, str, UUID, int, str]:
    return (*scope_columns(key.scope), key.capability_id, key.revision, key.digest)
