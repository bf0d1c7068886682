"""The decide use case: a person decides on a workflow that waits for approval."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import DecidedThrough
from pml_common.contracts.scope import Scope
from pml_gateway.application.server_listings import wait_for_listings
from pml_gateway.application.workflow_service import WorkflowService, no_such_workflow
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.tool_calls.repeatable import read_only_among, repeatable_among
from pml_gateway.domain.workflow.approval import Decide, agreed_on, answerable, with_shown
from pml_gateway.domain.workflow.events import Decided
from pml_gateway.domain.workflow.parking import denied_calls, wanted_calls
from pml_gateway.domain.workflow.verdicts import denied_now, tools_named, verdicts_of
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import Caller, KnownTools, WorkflowStore


@dataclass(frozen=True)
class Decisions:
    """Decisions on approvals, each of which counts once."""

    workflows: WorkflowService
    store: WorkflowStore
    tools: KnownTools
    policy_of: Callable[[Scope], Policy]
    now: Callable[[], datetime]

    async def decide(
        self,
        caller: Caller,
        workflow_id: UUID,
        decide: Decide,
        through: DecidedThrough | None = None,
    ) -> ExecuteResponse:
        """Take a decision and build the response for the workflow's state then; `through` is its
        way, if it came without the approver's key. Raises NotFound, Conflict where the decision
        comes too late, and errors of storage."""
        at = self.now()
        known = await self.store.get(caller.scope, workflow_id)
        await wait_for_listings(_tools_of(known), self.tools)

        def step(workflow: Workflow) -> Step:
            decided = self._decided(workflow, decide, caller.principal, at)
            decided = replace(decided, through=through)
            after, effects = self.workflows.advance(workflow, decided)
            return with_shown(after, decide.shown), effects

        after = await self.workflows.step(caller.scope, workflow_id, step)
        if after is None:
            raise no_such_workflow(caller.scope, workflow_id)
        latest = await self.workflows.wait_for_end(after) if decide.wait else after
        return await self.workflows.response(latest)

    def _decided(self, workflow: Workflow, decide: Decide, by: str, at: datetime) -> Decided:
        """Check a decision against the workflow's present state. Raises Conflict."""
        approval = answerable(workflow, decide.approval_id, at)
        agreed_on(workflow, approval, decide)
        policies = (workflow.requested.policy, self.policy_of(workflow.scope))
        parked, analysis = workflow.parked, workflow.analysis
        dry_run = workflow.requested.dry_run
        verdicts = verdicts_of(policies, _tools_of(workflow), self.tools.find, dry_run)
        return Decided(
            approval_id=approval.approval_id,
            outcome=decide.outcome,
            by=by,
            at=at,
            reason=decide.reason,
            replan=decide.decision == "replan",
            repeatable_tools=repeatable_among(analysis, self.tools.find),
            read_only_tools=read_only_among(analysis, self.tools.find),
            covers=decide.covers,
            verdicts=verdicts,
            forbidden=denied_now(analysis, verdicts) or denied_calls(parked, verdicts),
        )


def _tools_of(workflow: Workflow | None) -> list[str]:
    """Every tool that a decision on a workflow may be about."""
    if workflow is None:
        return []
    wanted = [call.tool for call in wanted_calls(workflow.parked)] if workflow.parked else []
    return [*tools_named(workflow.analysis), *wanted]
