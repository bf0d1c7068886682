"""Signing the permission that a run carries, and refusing calls that it does not cover (B7)."""

import hmac
from collections import OrderedDict
from datetime import datetime

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.executor import WorkflowParked
from pml_common.contracts.gateway import CallTool
from pml_common.contracts.grant import Grant, GrantedCall
from pml_common.contracts.tool import ToolDefinition

_REMEMBERED = 256
"""Grants; so many runs hardly go on at once."""


def issue(
    analysis: ExecutionAnalyzed, approved_by: str | None, expires_at: datetime, secret: bytes
) -> Grant:
    """The signed grant for what was analysed: every tool and capability that was not denied, as it
    was then."""
    grant = Grant(
        scope=analysis.scope,
        workflow_id=analysis.workflow_id,
        code_hash=analysis.capability.code_hash,
        tools={
            tool.tool: tool.definition_hash
            for tool in analysis.decision.tools
            if tool.verdict != "deny"
        },
        capabilities={
            str(capability.capability_id): capability.code_hash
            for capability in analysis.capabilities
            if capability.verdict != "deny"
        },
        approved_by=approved_by,
        dry_run=analysis.dry_run,
        expires_at=expires_at,
    )
    return _signed(grant, secret)


def extend(
    parked: WorkflowParked, approved_by: str | None, expires_at: datetime, secret: bytes
) -> Grant:
    """The signed grant under which a parked run goes on: the call it waited for is in it, too. The
    calls of a layer are in it from the beginning."""
    wanted, calls = parked.wanted, parked.grant.calls
    if wanted.layer is None:
        call = GrantedCall(
            tool=wanted.tool, definition_hash=wanted.definition_hash, args_hash=wanted.args_hash
        )
        calls = (*calls, call)
    more = {"calls": calls, "approved_by": approved_by}
    return _signed(parked.grant.model_copy(update=more | {"expires_at": expires_at}), secret)


def is_ours(grant: Grant, secret: bytes) -> bool:
    """Whether a gateway with our secret has signed it as it is."""
    return hmac.compare_digest(grant.signature.encode(), _signature(grant, secret).encode())


class Signatures:
    """Tells which grants are signed with our secret; all calls of a run carry the same one, which
    is computed once."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known: OrderedDict[str, Grant] = OrderedDict()

    def is_ours(self, grant: Grant) -> bool:
        """Whether a gateway with our secret has signed it as it is, to its last field."""
        if self._known.get(grant.signature) == grant:
            return True
        if not is_ours(grant, self._secret):
            return False
        self._known[grant.signature] = grant
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return True


def refusal(call: CallTool, signatures: Signatures, now: datetime) -> str | None:
    """Why the grant does not allow this call, or None."""
    grant = call.grant
    if not signatures.is_ours(grant):
        return "the grant's signature is not this gateway's"
    if now >= grant.expires_at:
        return f"the grant expired at {grant.expires_at.isoformat()}"
    if (grant.scope, grant.workflow_id) != (call.scope, call.workflow_id):
        return "the grant belongs to another workflow"
    if grant.granted_as(call.tool, call.args) is None:
        return f"{call.tool} was not seen when the program was analysed, so nobody has allowed it"
    return None


def outdated(call: CallTool, definition_hash: str | None) -> str | None:
    """Why a granted tool is not what was granted, or None; `definition_hash` is that of the tool
    as its server defines it now, None without one."""
    if definition_hash is None:
        return f"{call.tool} is not there any more: its server does not list it"
    if call.grant.granted_as(call.tool, call.args) != definition_hash:
        return f"{call.tool} has changed since it was allowed; run the program again to decide anew"
    return None


def only_dry(call: CallTool, tool: ToolDefinition | None) -> str | None:
    """Why a dry run does not really call this tool, or None. The executor answers such calls with
    mocks and asks nobody; this is the second wall."""
    if not call.grant.dry_run or (tool is not None and tool.annotations.read_only):
        return None
    return f"{call.tool} is not marked read-only: a dry run does not call it"


def _signed(grant: Grant, secret: bytes) -> Grant:
    return grant.model_copy(update={"signature": _signature(grant, secret)})


def _signature(grant: Grant, secret: bytes) -> str:
    """HMAC-SHA256 of the content, hex."""
    return hmac.digest(secret, grant.signed_bytes(), "sha256").hex()
