"""A run stands at calls that a person must agree to: ask."""

from collections.abc import Callable, Sequence
from datetime import datetime

from pml_common.bus.port import Journal
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.decision import Policy
from pml_common.contracts.executor import WantedCall, WorkflowParked
from pml_common.contracts.scope import Scope
from pml_gateway.application.named_servers import require_told
from pml_gateway.application.runs import Runs
from pml_gateway.domain.workflow.events import Parked, ToolVerdict
from pml_gateway.domain.workflow.parking import wanted_calls
from pml_gateway.domain.workflow.verdicts import Verdicts, verdicts_of
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.domain.workflow.workflow_state import Rules
from pml_gateway.entrypoints.bus.founded import require_founded
from pml_gateway.entrypoints.bus.step import step_once
from pml_gateway.ports import KnownTools, Notifier, WorkflowStore

_CONSUMER = catalog.GATEWAY_ON_WORKFLOW_PARKED.durable


async def on_workflow_parked(
    parked: WorkflowParked,
    journal: Journal,
    workflows: WorkflowStore,
    notifier: Notifier,
    runs: Runs,
    tools: KnownTools,
    policy_of: Callable[[Scope], Policy],
    rules: Rules,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """Keep the question and state it; a redelivery states the same. Raises Retryable while the
    server of a wanted tool is connected for the first time, Rejected for a park that is not the
    journal's."""
    await require_founded(parked, journal)
    calls, present = wanted_calls(parked), policy_of(parked.scope)
    wanted = list(dict.fromkeys(call.tool for call in calls))
    if parked.wanted.layer is None:
        await require_told(wanted, tools)

    def workflow_event(workflow: Workflow) -> Parked:
        verdicts = verdicts_of((workflow.requested.policy, present), wanted, tools.find)
        return Parked(parked, now(), tuple(_asked(call, verdicts) for call in calls))

    return await step_once(parked, _CONSUMER, workflow_event, workflows, notifier, runs, rules)


def _asked(call: WantedCall, verdicts: Verdicts) -> ToolVerdict | None:
    said, tool = verdicts.on(call.tool, call.args, is_all=True), verdicts.tools.get(call.tool)
    return None if said is None or tool is None else ToolVerdict(*said, tool.definition_hash)
