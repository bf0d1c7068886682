"""A program cannot run: its workflow ends with the reasons."""

from collections.abc import Callable, Sequence
from datetime import datetime

from pml_common.contracts import catalog
from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.base import Message
from pml_gateway.domain.happenings import NotAnalyzed
from pml_gateway.domain.rules import Rules
from pml_gateway.domain.workflow import Workflow
from pml_gateway.handlers.named_servers import absent
from pml_gateway.handlers.runs import Runs
from pml_gateway.handlers.step import step_once
from pml_gateway.ports import Newsroom, ToolServers, WorkflowStore

_CONSUMER = catalog.GATEWAY_ON_ANALYSIS_REJECTED.durable


async def on_analysis_rejected(
    rejection: AnalysisRejected,
    workflows: WorkflowStore,
    newsroom: Newsroom,
    runs: Runs,
    tools: ToolServers,
    rules: Rules,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """End the workflow; a redelivery states the same fact."""

    def happening(workflow: Workflow) -> NotAnalyzed:
        return NotAnalyzed(rejection, now(), tuple(absent(workflow.requested.code, tools)))

    return await step_once(rejection, _CONSUMER, happening, workflows, newsroom, runs, rules)
