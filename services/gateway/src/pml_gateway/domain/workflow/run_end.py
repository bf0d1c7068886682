"""The end of a workflow whose run has ended, derived from the run's own end."""

from datetime import UTC, datetime
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import WorkflowFinished


def ended_at(run: RunFinished) -> datetime:
    """Return when a run ended: the time of its journal's last entry."""
    ms = run.entries[-1].ts if run.entries else run.started_at + run.duration_ms
    return datetime.fromtimestamp(ms / 1000, UTC)


def finished_id(workflow_id: UUID) -> UUID:
    """Return the id of the event that a workflow has finished."""
    return ids.effect_id(workflow_id, "workflow-finished")


def workflow_finished(run: RunFinished) -> WorkflowFinished:
    """Build the event that the workflow of this run has finished. It is not published: who follows
    a workflow gets it after the run's end."""
    return WorkflowFinished(
        scope=run.scope,
        event_id=finished_id(run.workflow_id),
        workflow_id=run.workflow_id,
        status="success" if run.success else "error",
        capability_id=run.capability.capability_id,
        result=run.result,
        error=run.error,
        finished_at=ended_at(run),
    )
