"""A program cannot run: its workflow ends with the reasons."""

from collections.abc import Callable, Sequence
from datetime import datetime

from pml_common.contracts import catalog
from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.base import Message
from pml_gateway.application.named_servers import absent
from pml_gateway.application.runs import Runs
from pml_gateway.domain.workflow.events import NotAnalyzed
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.domain.workflow.workflow_state import Rules
from pml_gateway.entrypoints.bus.step import step_once
from pml_gateway.ports import Notifier, ToolServers, WorkflowStore

_CONSUMER = catalog.GATEWAY_ON_ANALYSIS_REJECTED.durable


async def on_analysis_rejected(
    rejection: AnalysisRejected,
    workflows: WorkflowStore,
    notifier: Notifier,
    runs: Runs,
    tools: ToolServers,
    rules: Rules,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """End the workflow; a redelivery states the same fact."""

    def workflow_event(workflow: Workflow) -> NotAnalyzed:
        return NotAnalyzed(rejection, now(), tuple(absent(workflow.requested.code, tools)))

    return await step_once(rejection, _CONSUMER, workflow_event, workflows, notifier, runs, rules)
