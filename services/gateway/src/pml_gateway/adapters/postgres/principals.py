"""The record of deletions of principals' data in Postgres, schema `gateway`."""

from collections.abc import Sequence

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_gateway.domain.api.principals import PrincipalDeletion
from pml_gateway.ports import PrincipalDeletionRecord

_SQL = load_queries("pml_gateway")


class PostgresPrincipalDeletions(PrincipalDeletionRecord):
    """One row for each deletion."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @override
    async def add(self, scope: Scope, deletion: PrincipalDeletion) -> None:
        who = storable(deletion.principal), storable(deletion.deleted_by)
        columns = *scope_columns(scope), deletion.deletion_id, *who, deletion.deleted_at
        await self._pools.change(scope, _SQL["record-principal-deletion"], *columns)

    @override
    async def newest(self, scope: Scope, limit: int) -> Sequence[PrincipalDeletion]:
        where = *scope_columns(scope), limit
        rows = await self._pools.fetch(scope, _SQL["list-principal-deletions"], *where)
        return [PrincipalDeletion(**row) for row in rows]
