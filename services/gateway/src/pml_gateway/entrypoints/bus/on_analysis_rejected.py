"""Handler of `analysis-rejected`: the program cannot run."""

from collections.abc import Callable, Sequence
from datetime import datetime

from pml_common.contracts import catalog
from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.base import Message
from pml_gateway.application.server_listings import absent_servers
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.workflow.events import NotAnalyzed
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import ToolServers

_CONSUMER = catalog.GATEWAY_ON_ANALYSIS_REJECTED.durable


async def on_analysis_rejected(
    rejection: AnalysisRejected,
    workflows: WorkflowService,
    tools: ToolServers,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """End the workflow with the reasons; a redelivery returns the same messages."""

    def step(workflow: Workflow) -> Step:
        servers = tuple(absent_servers(workflow.requested.code, tools))
        return workflows.advance(workflow, NotAnalyzed(rejection, now(), servers))

    return await workflows.step_once(rejection, _CONSUMER, step)
