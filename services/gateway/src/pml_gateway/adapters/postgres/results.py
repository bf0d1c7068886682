"""Results kept for good, in Postgres, schema `gateway`."""

from datetime import datetime
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_common.storage.pool import Pool, connection
from pml_common.storage.queries import load_queries
from pml_gateway.adapters.postgres.deadline import with_deadline
from pml_gateway.adapters.postgres.rows import key_of
from pml_gateway.domain.workflow.result_cache import Kept, ResultKey

_SQL = load_queries("pml_gateway")


class PostgresResults:
    """See `ports.LastingResults`; what a caller waits for takes `patience_s` at most."""

    def __init__(self, pool: Pool, *, patience_s: float = 1.5) -> None:
        self._pool = pool
        self._patience_s = patience_s

    async def find(self, key: ResultKey) -> Kept | None:
        """See `ports.KeptResults`."""
        return await with_deadline(self._find(key), self._patience_s)

    async def _find(self, key: ResultKey) -> Kept | None:
        async with connection(self._pool) as held:
            row = await held.fetchrow(_SQL["find-result"], *_columns(key))
        return None if row is None else Kept(row["workflow_id"], row["expires_at"])

    async def keep(self, key: ResultKey, kept: Kept) -> None:
        """See `ports.KeptResults`."""
        await with_deadline(self._keep(key, kept), self._patience_s)

    async def _keep(self, key: ResultKey, kept: Kept) -> None:
        columns = (*_columns(key), kept.workflow_id, kept.expires_at)
        async with connection(self._pool) as held:
            await held.execute(_SQL["keep-result"], *columns)

    async def drop(self, scope: Scope, capability_id: UUID, but_revision: int) -> None:
        """See `ports.LastingResults`."""
        async with connection(self._pool) as held:
            await held.execute(_SQL["drop-results"], *key_of(scope), capability_id, but_revision)

    async def forget(self, now: datetime) -> None:
        """See `ports.LastingResults`."""
        async with connection(self._pool) as held:
            await held.execute(_SQL["forget-results"], now)


def _columns(key: ResultKey) -> tuple[str, str, UUID, int, str]:
    return (*key_of(key.scope), key.capability_id, key.revision, key.digest)
