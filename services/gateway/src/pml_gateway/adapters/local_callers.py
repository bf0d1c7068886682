"""Who asks, where everybody who can reach us is the one local agent, and one person decides."""

from collections.abc import Mapping

from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.approver import Approver
from pml_gateway.ports import Caller


class LocalCallers:
    """See `ports.Approvers`."""

    def __init__(self, scope: Scope, principal: str, approver: Approver) -> None:
        self._agent = Caller(scope, principal)
        self._person = Caller(scope, approver.principal)
        self._approver = approver

    async def identify(self, headers: Mapping[str, str]) -> Caller:
        """See `ports.Callers`: the agent, whatever it shows."""
        return self._agent

    async def approver(self, headers: Mapping[str, str]) -> Caller:
        """See `ports.Approvers`."""
        self._approver.check(headers.get("authorization"))
        return self._person
