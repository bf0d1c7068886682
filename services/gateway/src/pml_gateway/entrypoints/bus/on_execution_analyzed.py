"""Handler of `execution-analyzed`: run the program, request an approval, or end the workflow."""

from collections.abc import Sequence

from pml_common.contracts import catalog
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_gateway.application.rulings import Rulings
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.workflow.provenance import answers_stored_request
from pml_gateway.domain.workflow.workflow import Step, Workflow

_CONSUMER = catalog.GATEWAY_ON_EXECUTION_ANALYZED.durable


async def on_execution_analyzed(
    analysis: ExecutionAnalyzed, workflows: WorkflowService, rulings: Rulings
) -> Sequence[Message]:
    """Carry out the decision, if the workflow was stored without one; a redelivery returns the same
    messages. An analysis that answered a query is for the registry alone: it changes nothing here.
    Raises Retryable while something that the decision needs is away."""
    if not answers_stored_request(analysis):
        return ()
    known = await workflows.known(analysis.scope, analysis.workflow_id)
    waits = known is not None and known.state == "requested"
    event = await rulings.on(analysis, known.requested if known and waits else None)

    def step(workflow: Workflow) -> Step:
        return workflows.advance(workflow, event(workflow))

    return await workflows.step_once(analysis, _CONSUMER, step)
