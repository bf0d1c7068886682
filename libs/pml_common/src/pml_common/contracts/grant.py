"""The signed permission a run carries to every tool call (B7)."""

import json
from uuid import UUID

from pydantic import AwareDatetime, Field

from pml_common.contracts.base import Contract
from pml_common.contracts.scope import Scope


class Grant(Contract):
    """What one run may call: `tools` maps each granted tool to its definition hash, `capabilities`
    each capability, by id, to its code hash. Under a dry run only read-only tools are called."""

    scope: Scope
    workflow_id: UUID
    code_hash: str
    tools: dict[str, str]
    capabilities: dict[str, str] = Field(default_factory=dict)
    approved_by: str | None = None
    dry_run: bool = False
    expires_at: AwareDatetime
    signature: str = ""

    def signed_bytes(self) -> bytes:
        """Everything but the signature, in one canonical form."""
        content = self.model_dump(mode="json", exclude={"signature"})
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
