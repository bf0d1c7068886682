"""The signed permission of one run, enforced at every tool call."""

import hashlib
import json
from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from pml_common.contracts.base import Contract
from pml_common.contracts.decision import PolicyRule
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Argument


class GrantedNode(Contract):
    """A call that the approver was shown: of a tool, or of a capability (`capability_id`) that
    leads to one. Each argument shown as known is bound. `repeats`: more than once in a run.
    `source`: its results appear in bound arguments of other nodes, so its calls must match what was
    shown, whatever the tool."""

    tool: str | None = None
    capability_id: UUID | None = None
    arguments: dict[str, Argument] = Field(default_factory=dict)
    repeats: bool = True
    source: bool = False


class GrantedCall(Contract):
    """One call that a person allowed while its run was parked, with exactly these arguments."""

    node_id: str
    occurrence: int = Field(ge=0)
    tool: str
    definition_hash: str
    args_hash: str


class GrantedRest(Contract):
    """All further calls of a tool at a node, with any arguments, allowed by a person while the run
    was parked."""

    node_id: str
    tool: str
    definition_hash: str


JournalKind = Literal["signed", "unsigned_until_park", "unsigned"]
"""Appends that count beside signed ones: none; those of a release that did not sign them, before
the run was parked under it; or before the first signed one (ADR 0049)."""


class Grant(Contract):
    """The calls that one run may make, and their arguments.

    `tools` maps each granted tool to its definition hash. Calls of those in `bound` must match a
    node of `nodes`, one of `calls`, or `rest`; the others may be called with any arguments, except
    at nodes that are a source. `nodes` are keyed by node id, those of a nested capability by
    `<capability id>/<node id>`. `capabilities` maps each capability, by id, to its code hash, and
    `texts` to the SHA-256 of the text that runs; `text_hash` is that of the program, `args_hash`
    that of the caller's arguments. `standing` are the policy's rules on bound tools, in their
    order: a call that the first matching rule allows needs no node. `computed_parks`: calls with
    computed arguments need an approval of their own. `policy_revision` identifies the policy of the
    decision. In a dry run only read-only tools are called. `journal` says which appends of the run
    count. `kid` names the key of the signature.
    """

    scope: Scope
    workflow_id: UUID
    code_hash: str
    text_hash: str
    args_hash: str
    tools: dict[str, str]
    bound: tuple[str, ...] = ()
    nodes: dict[str, GrantedNode] = Field(default_factory=dict)
    capabilities: dict[str, str] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)
    calls: tuple[GrantedCall, ...] = ()
    rest: tuple[GrantedRest, ...] = ()
    standing: tuple[PolicyRule, ...] = ()
    computed_parks: bool = False
    policy_revision: str
    approved_by: str | None = None
    dry_run: bool = False
    expires_at: AwareDatetime
    journal: JournalKind = "unsigned"
    kid: str = ""
    signature: str = ""

    def signed_bytes(self) -> bytes:
        """Return everything but the signature, and the kind of the journal, in canonical form; it
        begins with its purpose, so that no signature of other content is valid for it. What the
        grant says of the journal is signed with the command that brings it."""
        content = self.model_dump(mode="json", exclude={"signature", "journal"})
        return (
            b"pml-grant-v1\n" + json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        )

    def digest(self) -> str:
        """Return the SHA-256 of the signed grant, hex, by which calls refer to it."""
        return hashlib.sha256(self.signed_bytes() + self.signature.encode()).hexdigest()
