"""The acceptance of a workflow whose run begins at once, as a message and back."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunWorkflow
from pml_gateway.domain.workflow.workflow_state import Workflow

_ONLY_IN_RUN: Final = {"instrumented": "", "insertions": (), "injected": ()}
"""Fields of an analysis that its run command has, too."""


def accepted_id(workflow_id: UUID) -> UUID:
    """Return the id of the message that a workflow was accepted."""
    return ids.effect_id(workflow_id, "workflow-accepted")


def acceptance_of(workflow: Workflow, effects: Sequence[Message]) -> WorkflowAccepted | None:
    """Build the message of a workflow whose first step began its run; None if it did not."""
    run = effects[0] if len(effects) == 1 else None
    if not isinstance(run, RunWorkflow) or workflow.analysis is None or workflow.due_at is None:
        return None
    return WorkflowAccepted(
        scope=workflow.scope,
        event_id=accepted_id(workflow.workflow_id),
        workflow_id=workflow.workflow_id,
        requested=workflow.requested,
        analysis=workflow.analysis.model_copy(update=_ONLY_IN_RUN),
        run=run,
        idempotency_key=workflow.idempotency_key,
        request_hash=workflow.request_hash,
        due_at=workflow.due_at,
        traceparent=workflow.traceparent,
        call_digest=workflow.call_digest,
    )


def accepted_workflow(accepted: WorkflowAccepted) -> Workflow:
    """Build the workflow as it was accepted: it runs."""
    run = accepted.run
    in_run = {name: getattr(run, name) for name in _ONLY_IN_RUN}
    return Workflow(
        requested=accepted.requested,
        idempotency_key=accepted.idempotency_key,
        request_hash=accepted.request_hash,
        timeout_s=run.timeout_s,
        due_at=accepted.due_at,
        traceparent=accepted.traceparent,
        call_digest=accepted.call_digest,
        state="running",
        analysis=accepted.analysis.model_copy(update=in_run),
        grant=run.grant,
    )
