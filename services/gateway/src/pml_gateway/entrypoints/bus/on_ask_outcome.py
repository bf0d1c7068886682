"""Handles `ask-outcome`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.gateway import AskOutcome, WorkflowOutcome
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.workflow.workflow import Workflow


async def on_ask_outcome(query: AskOutcome, workflows: WorkflowService) -> WorkflowOutcome:
    """Tell how a workflow stands. Raises QueryFailed `unavailable` while that is not known."""
    try:
        workflow = await workflows.known(query.scope, query.workflow_id)
    except StorageUnavailable as outage:
        raise QueryFailed("unavailable", str(outage)) from outage
    return _outcome(workflow)


def _outcome(workflow: Workflow | None) -> WorkflowOutcome:
    if workflow is None:
        return WorkflowOutcome(state="unknown")
    analysis = workflow.analysis
    is_real = analysis is not None and not analysis.dry_run
    ran = analysis.capability.capability_id if analysis is not None and is_real else None
    match workflow.state:
        case "succeeded" | "failed":
            state = "succeeded" if workflow.proves_its_program else "failed"
            return WorkflowOutcome(state=state, capability_id=ran)
        case _:
            return WorkflowOutcome(state="under_way", capability_id=ran)
