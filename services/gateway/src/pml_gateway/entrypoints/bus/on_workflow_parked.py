"""Handler of `workflow-parked`: a person must approve calls that the run waits at."""

from collections.abc import Callable, Sequence
from datetime import datetime

from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.decision import Policy
from pml_common.contracts.executor import WantedCall, WorkflowParked
from pml_common.contracts.scope import Scope
from pml_gateway.application.server_listings import require_listings
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.workflow.events import Parked, ToolVerdict
from pml_gateway.domain.workflow.parking import wanted_calls
from pml_gateway.domain.workflow.verdicts import Verdicts, verdicts_of
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import KnownTools

_CONSUMER = catalog.GATEWAY_ON_WORKFLOW_PARKED.durable


async def on_workflow_parked(
    parked: WorkflowParked,
    workflows: WorkflowService,
    tools: KnownTools,
    policy_of: Callable[[Scope], Policy],
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """Request an approval of the calls; a redelivery returns the same messages. Raises Retryable
    while the server of a wanted tool is being connected for the first time."""
    calls, present = wanted_calls(parked), policy_of(parked.scope)
    wanted = list(dict.fromkeys(call.tool for call in calls))
    if parked.wanted.layer is None:
        await require_listings(wanted, tools)

    def step(workflow: Workflow) -> Step:
        verdicts = verdicts_of((workflow.requested.policy, present), wanted, tools.find)
        asked = tuple(_asked(call, verdicts) for call in calls)
        return workflows.advance(workflow, Parked(parked.without_entries(), now(), asked))

    return await workflows.step_once(parked, _CONSUMER, step)


def _asked(call: WantedCall, verdicts: Verdicts) -> ToolVerdict | None:
    verdict, tool = verdicts.on(call.tool, call.args, is_all=True), verdicts.tools.get(call.tool)
    return None if verdict is None or tool is None else ToolVerdict(*verdict, tool.definition_hash)
