"""The signed permission of a run: issued from what was shown, extended by people."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pml_common.binding.canonical import sha256_of_text
from pml_common.binding.granting import granted_nodes
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.executor import WantedCall
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.grant import Grant, GrantedCall, GrantedRest
from pml_common.contracts.tool import args_hash
from pml_common.signing import SigningKey
from pml_gateway.domain.workflow.verdicts import Verdicts, bound_tools

Covers = Literal["call", "calls", "node"]
"""Extent of an approval of a parked run: the first waiting call, all waiting calls, or all further
calls of their nodes."""


def issue(
    requested: ExecutionRequested,
    analysis: ExecutionAnalyzed,
    verdicts: Verdicts,
    approved_by: str | None,
    expires_at: datetime,
    key: SigningKey,
) -> Grant:
    """Return the signed grant for an analysis: every tool and capability that was not denied, by
    its hash, and the shown arguments of those that need approval."""
    bound = bound_tools(analysis, verdicts)
    nodes = granted_nodes(analysis.structure.nodes, analysis.capabilities, bound) if bound else {}
    grant = Grant(
        scope=analysis.scope,
        workflow_id=analysis.workflow_id,
        code_hash=analysis.capability.code_hash,
        text_hash=sha256_of_text(analysis.instrumented),
        args_hash=args_hash(requested.args),
        tools={
            tool.tool: tool.definition_hash
            for tool in analysis.decision.tools
            if tool.verdict != "deny"
        },
        bound=bound,
        nodes=nodes,
        capabilities={
            str(capability.capability_id): capability.code_hash
            for capability in analysis.capabilities
            if capability.verdict != "deny"
        },
        texts={
            str(one.capability_id): sha256_of_text(one.instrumented) for one in analysis.injected
        },
        standing=verdicts.standing(bound),
        computed_parks=verdicts.computed_parks,
        policy_revision=verdicts.revision,
        approved_by=approved_by,
        dry_run=analysis.dry_run,
        expires_at=expires_at,
        journal="signed",
    )
    return signed(grant, key)


def extend(
    grant: Grant,
    wanted: Sequence[WantedCall],
    covers: Covers,
    approved_by: str | None,
    expires_at: datetime,
    key: SigningKey,
) -> Grant:
    """Return the signed grant under which a parked run continues: with the calls that a person
    approved. The calls of a layer are in the grant from the beginning. Unsigned appends of an
    earlier release count no longer than until that park."""
    asked = [call for call in wanted if call.layer is None]
    calls = asked[:1] if covers == "call" else asked if covers == "calls" else []
    rest = {(call.node_id, call.tool): call for call in asked} if covers == "node" else {}
    update = {
        "calls": (*grant.calls, *map(_granted_call, calls)),
        "rest": (*grant.rest, *map(_granted_rest, rest.values())),
        "approved_by": approved_by,
        "expires_at": expires_at,
        "journal": "unsigned_until_park" if grant.journal == "unsigned" else grant.journal,
    }
    return signed(grant.model_copy(update=update), key)


def _granted_call(wanted: WantedCall) -> GrantedCall:
    return GrantedCall(
        node_id=wanted.node_id,
        occurrence=wanted.occurrence,
        tool=wanted.tool,
        definition_hash=wanted.definition_hash,
        args_hash=wanted.args_hash,
    )


def _granted_rest(wanted: WantedCall) -> GrantedRest:
    return GrantedRest(
        node_id=wanted.node_id, tool=wanted.tool, definition_hash=wanted.definition_hash
    )


def signed(grant: Grant, key: SigningKey) -> Grant:
    """Return the grant, signed by a gateway's key."""
    named = grant.model_copy(update={"kid": key.kid, "signature": ""})
    return named.model_copy(update={"signature": key.sign(named.signed_bytes())})
