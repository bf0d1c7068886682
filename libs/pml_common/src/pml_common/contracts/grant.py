"""The signed permission a run carries to every tool call (B7)."""

import json
from uuid import UUID

from pydantic import AwareDatetime, Field

from pml_common.contracts.base import Contract
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, args_hash


class GrantedCall(Contract):
    """One call that a person allowed while its run was parked: this tool with these arguments."""

    tool: str
    definition_hash: str
    args_hash: str


class Grant(Contract):
    """What one run may call: `tools` maps each granted tool to its definition hash, `capabilities`
    each capability, by id, to its code hash; `calls` were allowed one by one. Under a dry run only
    read-only tools are called."""

    scope: Scope
    workflow_id: UUID
    code_hash: str
    tools: dict[str, str]
    capabilities: dict[str, str] = Field(default_factory=dict)
    calls: tuple[GrantedCall, ...] = ()
    approved_by: str | None = None
    dry_run: bool = False
    expires_at: AwareDatetime
    signature: str = ""

    def granted_as(self, tool: str, args: JsonObject) -> str | None:
        """The hash of the definition by which this call is granted; None where it is not."""
        granted = self.tools.get(tool)
        if granted is not None or not self.calls:
            return granted
        wanted = tool, args_hash(args)
        allowed = (each for each in self.calls if (each.tool, each.args_hash) == wanted)
        return next((each.definition_hash for each in allowed), None)

    def signed_bytes(self) -> bytes:
        """Everything but the signature, in one canonical form."""
        content = self.model_dump(mode="json", exclude={"signature"})
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
