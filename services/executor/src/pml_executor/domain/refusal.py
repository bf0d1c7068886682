"""What a grant does not cover (B7); the gateway checks again, and the signature with it."""

from datetime import datetime

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.grant import Grant


def refused_run(command: RunWorkflow, now: datetime) -> WorkflowError | None:
    """Why this run must not start under its grant, or None."""
    grant = command.grant
    if grant.scope != command.scope or grant.workflow_id != command.workflow_id:
        return _denied("the grant belongs to another workflow")
    if grant.code_hash != command.capability.code_hash:
        return _denied("the grant was given for other code; submit the program again")
    if grant.expires_at <= now:
        return _denied(f"the grant expired at {grant.expires_at.isoformat()}; submit it again")
    for one in command.injected:
        if grant.capabilities.get(str(one.capability_id)) != one.code_hash:
            return _denied(f"the grant does not cover capability {one.name} as it is now")
    return None


def refused_call(grant: Grant, tool: str, node_id: str) -> WorkflowError | None:
    """Why this tool must not be called, or None."""
    if tool in grant.tools:
        return None
    if tool.startswith("cap:"):
        message = f"{tool} was not seen when the program was analysed, so nobody has allowed it"
        return WorkflowError(kind="denied", message=message, tool=tool, node_id=node_id)
    granted = ", ".join(sorted(grant.tools)) or "none"
    message = f"{tool} is not among the tools granted to this run ({granted})"
    return WorkflowError(kind="denied", message=message, tool=tool, node_id=node_id)


def _denied(message: str) -> WorkflowError:
    return WorkflowError(kind="denied", message=message)
