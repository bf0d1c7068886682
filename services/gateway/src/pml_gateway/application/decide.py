"""A person decides on what waits for approval (F4)."""

from dataclasses import dataclass
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_gateway.application.execute import Executions
from pml_gateway.application.named_servers import until_told
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.errors import NotFound
from pml_gateway.domain.tool_calls.repeatable import repeatable_among
from pml_gateway.domain.workflow.approval import Decide, agreed_on, answerable, with_shown
from pml_gateway.domain.workflow.events import Decided
from pml_gateway.domain.workflow.parking import denied_calls, wanted_calls
from pml_gateway.domain.workflow.verdicts import denied_now, tools_named, verdicts_of
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from pml_gateway.ports import Caller, KnownTools, Outgoing


@dataclass(frozen=True)
class Decisions:
    """Decisions of people, each of which counts once."""

    executions: Executions
    tools: KnownTools

    async def decide(self, caller: Caller, workflow_id: UUID, decide: Decide) -> ExecuteResponse:
        """Take a decision and tell how the workflow stands then. Raises NotFound, and Conflict
        where the decision comes too late; errors of storage."""
        workflow = await self._take(caller, workflow_id, decide)
        if decide.wait:
            return await self.executions.end_of(workflow)
        return await self.executions.answer(workflow)

    async def _take(self, caller: Caller, workflow_id: UUID, decide: Decide) -> Workflow:
        at, executions = self.executions.now(), self.executions
        known = await executions.workflows.get(caller.scope, workflow_id)
        await until_told(_tools_of(known), self.tools)

        def step(workflow: Workflow) -> Step:
            approval = answerable(workflow, decide.approval_id, at)
            agreed_on(workflow, approval, decide)
            policies = (workflow.requested.policy, executions.policy_of(workflow.scope))
            parked, analysis = workflow.parked, workflow.analysis
            dry_run = workflow.requested.dry_run
            verdicts = verdicts_of(policies, _tools_of(workflow), self.tools.find, dry_run)
            settled = Decided(
                approval_id=approval.approval_id,
                outcome=decide.outcome,
                by=caller.principal,
                at=at,
                reason=decide.reason,
                replan=decide.decision == "replan",
                repeatable_tools=repeatable_among(analysis, self.tools.find),
                covers=decide.covers,
                verdicts=verdicts,
                forbidden=denied_now(analysis, verdicts) or denied_calls(parked, verdicts),
            )
            after, effects = advance(workflow, settled, executions.rules)
            return with_shown(after, decide.shown), effects

        taken = await executions.workflows.change(caller.scope, workflow_id, step)
        if taken is None:
            raise unknown(caller.scope, workflow_id)
        after, effects = taken
        executions.runs.know(after)
        await executions.relay.publish([Outgoing(each, after.traceparent) for each in effects])
        return after


def _tools_of(workflow: Workflow | None) -> list[str]:
    """Every tool that a decision on a workflow may be about."""
    if workflow is None:
        return []
    wanted = [call.tool for call in wanted_calls(workflow.parked)] if workflow.parked else []
    return [*tools_named(workflow.analysis), *wanted]


def unknown(scope: Scope, workflow_id: UUID) -> NotFound:
    """There is no such workflow in the caller's scope."""
    return NotFound(f"no workflow {workflow_id} in {scope}")
