"""Handler of `workflow-accepted`: the workflow gets its row."""

from collections.abc import Sequence

from pml_common.bus.port import Handled
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_gateway.application.workflow_service import WorkflowService


async def on_workflows_accepted(
    accepted: Sequence[WorkflowAccepted], *, workflows: WorkflowService
) -> Handled:
    """Store the workflows."""
    await workflows.store_accepted(accepted)
    return Handled()
