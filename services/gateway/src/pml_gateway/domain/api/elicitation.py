"""The setting that lets a credential's clients ask their users to decide approvals."""

from pydantic import AwareDatetime

from pml_common.contracts.base import Contract
from pml_gateway.domain.api.request import Request


class SetElicitation(Request):
    """Let forms that are answered over the agent's connection decide approvals, or not."""

    may_elicit: bool


class ElicitationSetting(Contract):
    """Whether forms that are answered over the connection of this principal's credential decide
    approvals, and who has set that; off where nobody has."""

    principal: str
    may_elicit: bool = False
    set_by: str | None = None
    set_at: AwareDatetime | None = None
