"""Checks of a run and its calls against the grant; the gateway checks again."""

from datetime import datetime

from pml_common.binding.canonical import sha256_of_text
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.tool import args_hash
from pml_executor.domain.journal import Call


def refused_run(command: RunWorkflow, now: datetime) -> WorkflowError | None:
    """Return the error if this run must not start under its grant, else None."""
    grant = command.grant
    if grant.scope != command.scope or grant.workflow_id != command.workflow_id:
        return _denied("the grant belongs to another workflow")
    if grant.code_hash != command.capability.code_hash:
        return _denied("the grant was given for other code; submit the program again")
    if grant.text_hash != sha256_of_text(command.instrumented):
        return _denied("the grant was given for another text; submit the program again")
    if grant.args_hash != args_hash(command.args):
        return _denied("the grant was given for other arguments; submit the program again")
    if grant.expires_at <= now:
        return _denied(f"the grant expired at {grant.expires_at.isoformat()}; submit it again")
    for one in command.injected:
        key = str(one.capability_id)
        if grant.capabilities.get(key) != one.code_hash:
            return _denied(f"the grant does not cover capability {one.name} as it is now")
        if grant.texts.get(key) != sha256_of_text(one.instrumented):
            return _denied(f"the grant was given for another text of capability {one.name}")
    return None


def unsigned() -> WorkflowError:
    """Build the error for a grant without a gateway's valid signature."""
    return _denied("the grant's signature is no gateway's")


def refused_call(command: RunWorkflow, tool: str, node_id: str) -> WorkflowError | None:
    """Return the error if this call ends the run without a request for approval, else None: that is
    so for a capability that the grant does not cover, and in a dry run."""
    grant = command.grant
    if tool.startswith("cap:"):
        message = f"{tool} was not seen when the program was analysed, so it is not allowed"
        return WorkflowError(kind="denied", message=message, tool=tool, node_id=node_id)
    if grant.dry_run and tool not in grant.tools:
        granted = ", ".join(sorted(grant.tools)) or "none"
        message = f"{tool} is not among the tools granted to this run ({granted})"
        return WorkflowError(kind="denied", message=message, tool=tool, node_id=node_id)
    return None


def refused_in_dry_run(command: RunWorkflow, call: Call, why: str) -> WorkflowError | None:
    """Return the error if a call that differs from what was approved ends the run: in a dry run.
    Else None, and approval is requested."""
    if not command.grant.dry_run:
        return None
    return WorkflowError(
        kind="denied", message=why, tool=call.tool, node_id=call.node_id, arguments=call.args
    )


def _denied(message: str) -> WorkflowError:
    return WorkflowError(kind="denied", message=message)
