"""Deletion of a workflow's data: what is left of it, and the event that tells other services."""

from dataclasses import replace
from datetime import datetime

from pml_common.contracts import ids
from pml_common.contracts.gateway import ExecutionRequested, WorkflowDataDeleted
from pml_gateway.domain.api.errors import Conflict, Gone
from pml_gateway.domain.workflow.workflow import Step
from pml_gateway.domain.workflow.workflow_state import Approval, Workflow


def deleted(workflow: Workflow, at: datetime) -> Step:
    """Return what is left of a workflow, and the event; a repetition changes nothing. Raises
    Conflict for one that has not ended."""
    if workflow.deleted_at is not None:
        return workflow, ()
    if workflow.finished_at is None:
        raise Conflict(
            f"workflow {workflow.workflow_id} has not ended: cancel it first, then delete its data"
        )
    told = WorkflowDataDeleted(
        scope=workflow.scope,
        event_id=ids.effect_id(workflow.workflow_id, "workflow-data-deleted"),
        workflow_id=workflow.workflow_id,
        deleted_by=workflow.requested.principal,
        deleted_at=at,
    )
    left = replace(
        workflow,
        requested=_emptied(workflow.requested),
        request_hash="",
        traceparent=None,
        call_digest=None,
        analysis=None,
        approval=_decision(workflow.approval),
        grant=None,
        run=None,
        error=None,
        deleted_at=at,
    )
    return left, (told,)


def require_kept(workflow: Workflow) -> None:
    """Raise Gone if the workflow's data was deleted."""
    if workflow.deleted_at is not None:
        at = workflow.deleted_at.isoformat(timespec="seconds")
        raise Gone(f"the data of workflow {workflow.workflow_id} was deleted at {at}")


def _emptied(requested: ExecutionRequested) -> ExecutionRequested:
    return ExecutionRequested(
        scope=requested.scope,
        event_id=requested.event_id,
        workflow_id=requested.workflow_id,
        principal=requested.principal,
        code="",
        requested_at=requested.requested_at,
    )


def _decision(approval: Approval | None) -> Approval | None:
    """Return who decided what, when and by which way, without what it was about."""
    return None if approval is None else replace(approval, parked=None, reason=None)
