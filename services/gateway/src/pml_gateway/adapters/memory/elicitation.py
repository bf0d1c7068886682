"""Settings of elicitation in memory; passes the same contract suite as those in Postgres."""

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.elicitation import ElicitationSetting
from pml_gateway.ports import ElicitationSettings


class MemoryElicitation(ElicitationSettings):
    def __init__(self) -> None:
        self._set: dict[tuple[Scope, str], ElicitationSetting] = {}

    @override
    async def of(self, scope: Scope, principal: str) -> ElicitationSetting:
        return self._set.get((scope, principal), ElicitationSetting(principal=principal))

    @override
    async def set(self, scope: Scope, setting: ElicitationSetting) -> None:
        before = await self.of(scope, setting.principal)
        if before.set_by is None or before.may_elicit != setting.may_elicit:
            self._set[scope, setting.principal] = setting
