"""Settings of elicitation in Postgres, schema `gateway`."""

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_gateway.adapters.postgres.deadline import with_deadline
from pml_gateway.domain.api.elicitation import ElicitationSetting
from pml_gateway.ports import ElicitationSettings

_SQL = load_queries("pml_gateway")


class PostgresElicitation(ElicitationSettings):
    """Operations take `patience_s` at most."""

    def __init__(self, pools: ScopedPools, *, patience_s: float = 1.5) -> None:
        self._pools = pools
        self._patience_s = patience_s

    @override
    async def of(self, scope: Scope, principal: str) -> ElicitationSetting:
        return await with_deadline(self._of(scope, principal), self._patience_s)

    async def _of(self, scope: Scope, principal: str) -> ElicitationSetting:
        key = *scope_columns(scope), principal
        row = await self._pools.fetchrow(scope, _SQL["get-elicitation"], *key)
        if row is None:
            return ElicitationSetting(principal=principal)
        return ElicitationSetting(
            principal=principal,
            may_elicit=row["may_elicit"],
            set_by=row["set_by"],
            set_at=row["set_at"],
        )

    @override
    async def set(self, scope: Scope, setting: ElicitationSetting) -> None:
        await with_deadline(self._set(scope, setting), self._patience_s)

    async def _set(self, scope: Scope, setting: ElicitationSetting) -> None:
        await self._pools.change(
            scope,
            _SQL["set-elicitation"],
            *scope_columns(scope),
            setting.principal,
            setting.may_elicit,
            storable(setting.set_by or ""),
            setting.set_at,
        )
