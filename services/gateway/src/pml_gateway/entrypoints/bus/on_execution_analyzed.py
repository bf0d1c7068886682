"""Handler of `execution-analyzed`: run the program, request an approval, or end the workflow."""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from pml_common.bus.errors import QueryFailed, Retryable
from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.decision import Policy
from pml_common.contracts.registry import ResolveCapability
from pml_common.contracts.scope import Scope
from pml_gateway.application.server_listings import require_listings
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.tool_calls.repeatable import read_only_among, repeatable_among
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.verdicts import tools_named, verdicts_of
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import KnownTools

_CONSUMER = catalog.GATEWAY_ON_EXECUTION_ANALYZED.durable


async def on_execution_analyzed(
    analysis: ExecutionAnalyzed,
    workflows: WorkflowService,
    tools: KnownTools,
    policy_of: Callable[[Scope], Policy],
    query_client: QueryClient,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """Carry out the decision; a redelivery returns the same messages. Raises Retryable while the
    registry does not tell which capability has the wanted name, and while the server of a tool is
    being connected for the first time."""
    named, present = tools_named(analysis), policy_of(analysis.scope)
    holder = await _name_holder(analysis, query_client)
    await require_listings(named, tools)

    def step(workflow: Workflow) -> Step:
        policies = (workflow.requested.policy, present)
        analyzed = Analyzed(
            analysis=analysis,
            at=now(),
            name_holder=holder,
            repeatable_tools=repeatable_among(analysis, tools.find),
            read_only_tools=read_only_among(analysis, tools.find),
            verdicts=verdicts_of(policies, named, tools.find, workflow.requested.dry_run),
        )
        return workflows.advance(workflow, analyzed)

    return await workflows.step_once(analysis, _CONSUMER, step)


async def _name_holder(analysis: ExecutionAnalyzed, query_client: QueryClient) -> UUID | None:
    """Find another capability that has the name wanted for this one."""
    wanted = analysis.capability
    if wanted.name is None:
        return None
    query = ResolveCapability(scope=analysis.scope, reference=wanted.name)
    try:
        holder = await query_client.request(catalog.RESOLVE_CAPABILITY, query)
    except QueryFailed as failure:
        if failure.code == "not_found":
            return None
        raise Retryable(f"the holder of the name {wanted.name} is unknown: {failure}") from failure
    return None if holder.capability_id == wanted.capability_id else holder.capability_id
