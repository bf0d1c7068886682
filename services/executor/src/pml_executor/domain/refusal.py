"""What a grant does not cover (B7); the gateway checks again."""

from datetime import datetime

from pml_common.binding.canonical import sha256_of_text
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.tool import args_hash
from pml_executor.domain.journal import Call


def refused_run(command: RunWorkflow, now: datetime) -> WorkflowError | None:
    """Why this run must not start under its grant, or None."""
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
    """The grant is not as a gateway signed it."""
    return _denied("the grant's signature is no gateway's")


def refused_call(command: RunWorkflow, tool: str, node_id: str) -> WorkflowError | None:
    """Why this call ends the run though nobody has been asked about it, or None: capabilities that
    the grant does not cover are not there, and in a dry run nobody is asked."""
    grant = command.grant
    if tool.startswith("cap:"):
        message = f"{tool} was not seen when the program was analysed, so nobody has allowed it"
        return WorkflowError(kind="denied", message=message, tool=tool, node_id=node_id)
    if grant.dry_run and tool not in grant.tools:
        granted = ", ".join(sorted(grant.tools)) or "none"
        message = f"{tool} is not among the tools granted to this run ({granted})"
        return WorkflowError(kind="denied", message=message, tool=tool, node_id=node_id)
    return None


def refused_unasked(command: RunWorkflow, call: Call, why: str) -> WorkflowError | None:
    """Why a call that is not what was approved ends the run, or None: a person is asked about it.
    In a dry run nobody is."""
    if not command.grant.dry_run:
        return None
    return WorkflowError(
        kind="denied", message=why, tool=call.tool, node_id=call.node_id, arguments=call.args
    )


def _denied(message: str) -> WorkflowError:
    return WorkflowError(kind="denied", message=message)
