"""Handler of `analysis-rejected`: the program cannot run."""

from collections.abc import Sequence

from pml_common.contracts import catalog
from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.base import Message
from pml_gateway.application.rulings import Rulings
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.workflow.workflow import Step, Workflow

_CONSUMER = catalog.GATEWAY_ON_ANALYSIS_REJECTED.durable


async def on_analysis_rejected(
    rejection: AnalysisRejected, workflows: WorkflowService, rulings: Rulings
) -> Sequence[Message]:
    """End the workflow with the reasons; a redelivery returns the same messages."""

    def step(workflow: Workflow) -> Step:
        return workflows.advance(workflow, rulings.on_rejection(rejection, workflow))

    return await workflows.step_once(rejection, _CONSUMER, step)
