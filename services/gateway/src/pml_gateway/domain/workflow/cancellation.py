"""Cancelling a workflow: the error it ends with, and the command to its executor."""

from typing import Annotated

from pydantic import StringConstraints

from pml_common.contracts import ids
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import CancelRun, RunWorkflow
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.request import Request
from pml_gateway.domain.workflow import parking
from pml_gateway.domain.workflow.events import Cancelled
from pml_gateway.domain.workflow.workflow_state import Workflow


class Cancel(Request):
    """Cancel a workflow; with `wait` the response comes when it has ended."""

    reason: Annotated[str, StringConstraints(max_length=2000)] | None = None
    wait: bool = False


def require_open(workflow: Workflow) -> None:
    """Raise Conflict if the workflow has ended."""
    if workflow.finished_at is not None:
        ended = workflow.finished_at.isoformat(timespec="seconds")
        raise Conflict(
            f"workflow {workflow.workflow_id} {workflow.state} at {ended}: nothing to cancel"
        )


def cancelled(workflow: Workflow, event: Cancelled) -> WorkflowError:
    """Return the error of a cancelled workflow; for one that runs, its first part: the executor
    adds what was called."""
    why = f"{event.by} cancelled it" + (f": {event.reason}" if event.reason else "")
    parked = workflow.parked
    if (tool := workflow.requested.direct_tool) is not None:
        message = f"{why}. Its call of {tool} was cancelled, and may have taken effect."
        return WorkflowError(kind="cancelled", message=message, tool=tool)
    if workflow.state == "running":
        return WorkflowError(kind="cancelled", message=why)
    if parked is not None:
        return parking.stopped(workflow, parked, why, "cancelled")
    return WorkflowError(kind="cancelled", message=f"{why}. Nothing of it had run.")


def cancel_run(run: RunWorkflow, error: WorkflowError) -> CancelRun:
    """Build the command that ends a run; built again, it is the same."""
    return CancelRun(
        scope=run.scope,
        command_id=ids.effect_id(run.workflow_id, "cancel-run"),
        workflow_id=run.workflow_id,
        run=run,
        why=error.message,
    )
