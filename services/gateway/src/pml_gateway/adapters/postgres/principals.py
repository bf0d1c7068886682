"""The record of deletions of principals' data in Postgres, schema `gateway`."""

from collections.abc import Sequence

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.pool import Pool, connection
from pml_common.storage.queries import load_queries, storable
from pml_gateway.domain.api.principals import PrincipalDeletion
from pml_gateway.ports import PrincipalDeletionRecord

_SQL = load_queries("pml_gateway")


class PostgresPrincipalDeletions(PrincipalDeletionRecord):
    """One row for each deletion."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @override
    async def add(self, scope: Scope, deletion: PrincipalDeletion) -> None:
        who = storable(deletion.principal), storable(deletion.deleted_by)
        async with connection(self._pool) as conn:
            key = *scope_columns(scope), deletion.deletion_id
            await conn.execute(_SQL["record-principal-deletion"], *key, *who, deletion.deleted_at)

    @override
    async def newest(self, scope: Scope, limit: int) -> Sequence[PrincipalDeletion]:
        async with connection(self._pool) as conn:
            rows = await conn.fetch(_SQL["list-principal-deletions"], *scope_columns(scope), limit)
        return [PrincipalDeletion(**row) for row in rows]
