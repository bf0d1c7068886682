"""Identification of callers for local use: every caller is the one local agent, and one person
approves."""

from collections.abc import Mapping

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.approver import Approver
from pml_gateway.ports import Approvers, Caller


class LocalCallers(Approvers):
    def __init__(self, scope: Scope, principal: str, approver: Approver) -> None:
        self._agent = Caller(scope, principal)
        self._person = Caller(scope, approver.principal, is_admin=approver.is_admin)
        self._approver = approver

    @override
    async def identify(self, headers: Mapping[str, str]) -> Caller:
        """Return the agent, whatever the headers."""
        return self._agent

    @override
    async def approver(self, headers: Mapping[str, str]) -> Caller:
        self._approver.check(headers.get("authorization"))
        return self._person
