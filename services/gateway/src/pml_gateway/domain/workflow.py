"""The life of a workflow, as a pure process manager.

requested → awaiting_approval | running → succeeded | failed. What follows from a step is messages,
their ids made from their cause, so that a step taken again states the same.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import (
    ApprovalDecided,
    ApprovalRequested,
    ExecutionRequested,
    WorkflowFinished,
)
from pml_common.contracts.scope import Scope
from pml_gateway.domain import failures
from pml_gateway.domain.dry_run import mocks_of
from pml_gateway.domain.grant import issue
from pml_gateway.domain.happenings import Analyzed, Due, Happening, NotAnalyzed, RunEnded, Settled
from pml_gateway.domain.rules import Rules

State = Literal["requested", "awaiting_approval", "running", "succeeded", "failed"]
ApprovalOutcome = Literal["approved", "denied", "expired"]
CLOCK = "the clock"
"""Who decides when nobody does."""


@dataclass(frozen=True)
class Approval:
    """A question to a person, and the answer once there is one."""

    approval_id: UUID
    requested_at: datetime
    expires_at: datetime
    outcome: ApprovalOutcome | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Workflow:
    """One execution.

    `request_hash` tells whether a repeated request asks the same; `error` is why it failed without
    a run; at `due_at` the next thing should have happened.
    """

    requested: ExecutionRequested
    idempotency_key: str
    request_hash: str
    timeout_s: float
    due_at: datetime | None
    traceparent: str | None = None
    state: State = "requested"
    analysis: ExecutionAnalyzed | None = None
    approval: Approval | None = None
    run: RunFinished | None = None
    error: WorkflowError | None = None
    finished_at: datetime | None = None

    @property
    def scope(self) -> Scope:
        """Whose it is."""
        return self.requested.scope

    @property
    def workflow_id(self) -> UUID:
        """Its id."""
        return self.requested.workflow_id


Step = tuple[Workflow, tuple[Message, ...]]


def advance(workflow: Workflow, happening: Happening, rules: Rules) -> Step:
    """The workflow after something happened, and what follows from it; what does not fit the
    state, or concerns another workflow, changes nothing."""
    match workflow.state, happening:
        case "requested", Analyzed() if _concerns(workflow, happening.analysis):
            return _decide(replace(workflow, analysis=happening.analysis), happening, rules)
        case "requested", NotAnalyzed() if _concerns(workflow, happening.rejection):
            return _fail(workflow, failures.not_analyzed(happening.rejection), happening.at)
        case "awaiting_approval", Settled():
            return _settle(workflow, happening, rules)
        case "running", RunEnded() if _concerns(workflow, happening.run):
            return _finish(workflow, happening)
        case _, Due() if workflow.due_at is not None and workflow.due_at <= happening.at:
            return _stir(workflow, happening, rules)
        case _:
            return workflow, ()


def _concerns(
    workflow: Workflow, message: ExecutionAnalyzed | AnalysisRejected | RunFinished
) -> bool:
    return (message.scope, message.workflow_id) == (workflow.scope, workflow.workflow_id)


def _decide(workflow: Workflow, analyzed: Analyzed, rules: Rules) -> Step:
    decision, at = analyzed.analysis.decision, analyzed.at
    if analyzed.name_holder is not None:
        name = workflow.requested.name
        return _fail(workflow, failures.name_taken(name, analyzed.name_holder), at)
    if decision.verdict == "deny":
        return _fail(workflow, failures.forbidden_by_policy(decision), at)
    if decision.verdict == "ask":
        return _ask(workflow, analyzed.analysis, at, rules)
    return _run(workflow, analyzed.analysis, at, analyzed.repeatable_tools, rules)


def _ask(workflow: Workflow, analysis: ExecutionAnalyzed, at: datetime, rules: Rules) -> Step:
    expires_at = at + rules.approval_ttl
    approval = Approval(ids.effect_id(analysis.event_id, "approval"), at, expires_at)
    asked = ApprovalRequested(
        scope=workflow.scope,
        event_id=ids.effect_id(approval.approval_id, "approval-requested"),
        workflow_id=workflow.workflow_id,
        approval_id=approval.approval_id,
        decision=analysis.decision,
        expires_at=expires_at,
    )
    after = replace(workflow, state="awaiting_approval", approval=approval, due_at=expires_at)
    return after, (asked,)


def _settle(workflow: Workflow, settled: Settled, rules: Rules) -> Step:
    approval, analysis = workflow.approval, workflow.analysis
    if approval is None or analysis is None or approval.approval_id != settled.approval_id:
        return workflow, ()
    if settled.at >= approval.expires_at:
        return workflow, ()
    by, at, reason = settled.by, settled.at, settled.reason
    decided, told = _answered(workflow, approval, settled.outcome, by, at, reason)
    if settled.outcome == "approved":
        after, effects = _run(decided, analysis, at, settled.repeatable_tools, rules)
    else:
        after, effects = _fail(decided, failures.denied(by, reason), at)
    return after, (told, *effects)


def _answered(
    workflow: Workflow,
    approval: Approval,
    outcome: ApprovalOutcome,
    by: str,
    at: datetime,
    reason: str | None = None,
) -> tuple[Workflow, ApprovalDecided]:
    told = ApprovalDecided(
        scope=workflow.scope,
        event_id=ids.effect_id(approval.approval_id, "approval-decided"),
        workflow_id=workflow.workflow_id,
        approval_id=approval.approval_id,
        outcome=outcome,
        decided_by=by,
        decided_at=at,
    )
    answer = replace(approval, outcome=outcome, decided_by=by, decided_at=at, reason=reason)
    return replace(workflow, approval=answer), told


def _stir(workflow: Workflow, due: Due, rules: Rules) -> Step:
    """End what nobody approved and what nobody will finish any more; ask again, under the same
    ids and ever more rarely, for what stands still."""
    approval, analysis, at = workflow.approval, workflow.analysis, due.at
    if workflow.state == "awaiting_approval" and approval is not None:
        decided, told = _answered(workflow, approval, "expired", CLOCK, at)
        after, effects = _fail(decided, failures.expired(), at)
        return after, (told, *effects)
    if at >= _hopeless_at(workflow, rules):
        return _fail(workflow, failures.abandoned(workflow.state == "running"), at)
    rarely = at + max(rules.patience, at - workflow.requested.requested_at)
    if workflow.state == "running" and analysis is not None:
        after, effects = _run(workflow, analysis, at, due.repeatable_tools, rules)
        return replace(after, due_at=max(rarely, after.due_at or at)), effects
    return replace(workflow, due_at=rarely), (workflow.requested,)


def _hopeless_at(workflow: Workflow, rules: Rules) -> datetime:
    """When the first grant of a run has expired, or what should be analysed has waited as long."""
    if workflow.state != "running":
        return workflow.requested.requested_at + rules.grant_slack
    approval = workflow.approval
    decided_at = approval.decided_at if approval else None
    began = decided_at or workflow.requested.requested_at
    return began + timedelta(seconds=workflow.timeout_s) + rules.grant_slack


def _run(
    workflow: Workflow,
    analysis: ExecutionAnalyzed,
    at: datetime,
    repeatable: tuple[str, ...],
    rules: Rules,
) -> Step:
    approval, timeout = workflow.approval, timedelta(seconds=workflow.timeout_s)
    approved_by = approval.decided_by if approval else None
    grant = issue(analysis, approved_by, at + timeout + rules.grant_slack, rules.secret)
    cause = approval.approval_id if approval else analysis.event_id
    command = RunWorkflow(
        scope=workflow.scope,
        command_id=ids.effect_id(cause, "run-workflow"),
        workflow_id=workflow.workflow_id,
        principal=workflow.requested.principal,
        capability=analysis.capability,
        intent=workflow.requested.intent,
        instrumented=analysis.instrumented,
        insertions=analysis.insertions,
        args=workflow.requested.args,
        grant=grant,
        mocks=mocks_of(analysis.decision, workflow.requested.dry_run),
        repeatable_tools=tuple(tool for tool in repeatable if tool in grant.tools),
        timeout_s=workflow.timeout_s,
    )
    return replace(workflow, state="running", due_at=at + timeout + rules.patience), (command,)


def _fail(workflow: Workflow, error: WorkflowError, at: datetime) -> Step:
    return _end(replace(workflow, state="failed", error=error), at)


def _finish(workflow: Workflow, ended: RunEnded) -> Step:
    state: State = "succeeded" if ended.run.success else "failed"
    return _end(replace(workflow, state=state, run=ended.run), ended.at)


def _end(workflow: Workflow, at: datetime) -> Step:
    run, analysis = workflow.run, workflow.analysis
    finished = WorkflowFinished(
        scope=workflow.scope,
        event_id=ids.effect_id(workflow.workflow_id, "workflow-finished"),
        workflow_id=workflow.workflow_id,
        status="success" if workflow.state == "succeeded" else "error",
        capability_id=analysis.capability.capability_id if analysis else None,
        result=run.result if run else None,
        error=run.error if run else workflow.error,
        finished_at=at,
    )
    return replace(workflow, finished_at=at, due_at=None), (finished,)
