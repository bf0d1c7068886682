"""Cancelling a workflow: why it ends, and what its executor is told."""

from typing import Annotated

from pydantic import StringConstraints

from pml_common.contracts import ids
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import CancelRun, RunWorkflow
from pml_gateway.domain.api.api import Request
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.workflow import parking
from pml_gateway.domain.workflow.events import Cancelled
from pml_gateway.domain.workflow.workflow_state import Workflow


class Cancel(Request):
    """Want no more of a workflow; with `wait` the answer comes when it has ended."""

    reason: Annotated[str, StringConstraints(max_length=2000)] | None = None
    wait: bool = False


def require_open(workflow: Workflow) -> None:
    """Raise Conflict where there is nothing to cancel any more."""
    if workflow.finished_at is not None:
        ended = workflow.finished_at.isoformat(timespec="seconds")
        raise Conflict(
            f"workflow {workflow.workflow_id} {workflow.state} at {ended}: nothing to cancel"
        )


def cancelled(workflow: Workflow, wish: Cancelled) -> WorkflowError:
    """Why a workflow ends that no executor has in hand; of one that runs, the beginning of that."""
    why = f"{wish.by} cancelled it" + (f": {wish.reason}" if wish.reason else "")
    parked = workflow.parked
    if workflow.state == "running":
        return WorkflowError(kind="cancelled", message=why)
    if parked is not None:
        return parking.stopped(workflow, parked, why, "cancelled")
    return WorkflowError(kind="cancelled", message=f"{why}. Nothing of it had run.")


def cancel_run(run: RunWorkflow, error: WorkflowError) -> CancelRun:
    """The command that ends a run; made anew, it is the same."""
    return CancelRun(
        scope=run.scope,
        command_id=ids.effect_id(run.workflow_id, "cancel-run"),
        workflow_id=run.workflow_id,
        run=run,
        why=error.message,
    )
