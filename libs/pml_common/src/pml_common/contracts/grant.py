"""The signed permission a run carries to every tool call (B7)."""

import json
from uuid import UUID

from pydantic import AwareDatetime, Field

from pml_common.contracts.base import Contract
from pml_common.contracts.decision import PolicyRule
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Argument
from pml_common.contracts.tool import JsonObject, args_hash


class GrantedNode(Contract):
    """A call that the approver was shown: of a tool, or of a capability (`capability_id`) on the
    way to one. Each argument shown as known is bound. `repeats`: more than once in a run."""

    tool: str | None = None
    capability_id: UUID | None = None
    arguments: dict[str, Argument] = Field(default_factory=dict)
    repeats: bool = True


class GrantedCall(Contract):
    """One call that a person allowed while its run was parked: this tool with these arguments."""

    node_id: str = ""
    occurrence: int = 0
    tool: str
    definition_hash: str
    args_hash: str


class GrantedRest(Contract):
    """All further calls of a tool at a node, whatever their arguments: a person allowed them while
    the run was parked."""

    node_id: str
    tool: str
    definition_hash: str


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
    bound: tuple[str, ...] = ()
    nodes: dict[str, GrantedNode] = Field(default_factory=dict)
    rest: tuple[GrantedRest, ...] = ()
    standing: tuple[PolicyRule, ...] = ()
    computed_parks: bool = False
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
