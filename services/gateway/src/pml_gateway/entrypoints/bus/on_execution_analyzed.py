"""A program was understood: let it run, ask a person, or end it."""

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
from pml_gateway.application.named_servers import require_told
from pml_gateway.application.runs import Runs
from pml_gateway.domain.tool_calls.repeatable import repeatable_among
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.verdicts import tools_named, verdicts_of
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.domain.workflow.workflow_state import Rules
from pml_gateway.entrypoints.bus.step import step_once
from pml_gateway.ports import KnownTools, Notifier, WorkflowStore

_CONSUMER = catalog.GATEWAY_ON_EXECUTION_ANALYZED.durable


async def on_execution_analyzed(
    analysis: ExecutionAnalyzed,
    workflows: WorkflowStore,
    notifier: Notifier,
    runs: Runs,
    tools: KnownTools,
    policy_of: Callable[[Scope], Policy],
    query_client: QueryClient,
    rules: Rules,
    now: Callable[[], datetime],
) -> Sequence[Message]:
    """Take the decision's consequence. Raises Retryable while nobody tells who holds its
    name, and while the server of a tool is connected for the first time."""
    named, present = tools_named(analysis), policy_of(analysis.scope)
    holder = await _name_holder(analysis, query_client)
    await require_told(named, tools)

    def workflow_event(workflow: Workflow) -> Analyzed:
        policies = (workflow.requested.policy, present)
        return Analyzed(
            analysis=analysis,
            at=now(),
            name_holder=holder,
            repeatable_tools=repeatable_among(analysis, tools.find),
            verdicts=verdicts_of(policies, named, tools.find, workflow.requested.dry_run),
        )

    return await step_once(analysis, _CONSUMER, workflow_event, workflows, notifier, runs, rules)


async def _name_holder(analysis: ExecutionAnalyzed, query_client: QueryClient) -> UUID | None:
    """Another capability that has the name which this one was to be learned by."""
    wanted = analysis.capability
    if wanted.name is None:
        return None
    query = ResolveCapability(scope=analysis.scope, reference=wanted.name)
    try:
        holder = await query_client.request(catalog.RESOLVE_CAPABILITY, query)
    except QueryFailed as failure:
        if failure.code == "not_found":
            return None
        raise Retryable(f"who holds the name {wanted.name}? {failure}") from failure
    return None if holder.capability_id == wanted.capability_id else holder.capability_id
