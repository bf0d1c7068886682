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
from pml_common.contracts.grant import Grant
from pml_common.contracts.scope import Scope
from pml_gateway.domain import failures
from pml_gateway.domain.grant import sign
from pml_gateway.domain.happenings import (
    Analyzed,
    ApprovalOutcome,
    Happening,
    NotAnalyzed,
    RunEnded,
    Settled,
)

State = Literal["requested", "awaiting_approval", "running", "succeeded", "failed"]


@dataclass(frozen=True)
class Rules:
    """What holds for grants and approvals. A grant outlives the time its run may take by
    `grant_slack`: queues and crashes take theirs."""

    secret: bytes
    approval_ttl: timedelta = timedelta(hours=1)
    grant_slack: timedelta = timedelta(hours=1)


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
    """One execution. `request_hash` tells whether a repeated request asks the same; `error` is why
    it failed without a run."""

    requested: ExecutionRequested
    idempotency_key: str
    request_hash: str
    timeout_s: float
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
        case _:
            return workflow, ()


def run_command(
    workflow: Workflow,
    analysis: ExecutionAnalyzed,
    cause: UUID,
    at: datetime,
    repeatable: tuple[str, ...],
    rules: Rules,
) -> RunWorkflow:
    """The command to run a workflow, with a grant for the tools that were not denied."""
    approval = workflow.approval
    grant = Grant(
        scope=workflow.scope,
        workflow_id=workflow.workflow_id,
        code_hash=analysis.capability.code_hash,
        tools={
            tool.tool: tool.definition_hash
            for tool in analysis.decision.tools
            if tool.verdict != "deny"
        },
        approved_by=approval.decided_by if approval else None,
        expires_at=at + timedelta(seconds=workflow.timeout_s) + rules.grant_slack,
    )
    return RunWorkflow(
        scope=workflow.scope,
        command_id=ids.effect_id(cause, "run-workflow"),
        workflow_id=workflow.workflow_id,
        principal=workflow.requested.principal,
        capability=analysis.capability,
        intent=workflow.requested.intent,
        instrumented=analysis.instrumented,
        args=workflow.requested.args,
        grant=sign(grant, rules.secret),
        repeatable_tools=tuple(tool for tool in repeatable if tool in grant.tools),
        timeout_s=workflow.timeout_s,
    )


def _concerns(
    workflow: Workflow, message: ExecutionAnalyzed | AnalysisRejected | RunFinished
) -> bool:
    return (message.scope, message.workflow_id) == (workflow.scope, workflow.workflow_id)


def _decide(workflow: Workflow, analyzed: Analyzed, rules: Rules) -> Step:
    analysis, at = analyzed.analysis, analyzed.at
    if analyzed.name_holder is not None:
        name = workflow.requested.name
        return _fail(workflow, failures.name_taken(name, analyzed.name_holder), at)
    match analysis.decision.verdict:
        case "deny":
            return _fail(workflow, failures.forbidden_by_policy(analysis.decision), at)
        case "ask":
            return _ask(workflow, analysis, at, rules)
        case "allow":
            repeatable, cause = analyzed.repeatable_tools, analysis.event_id
            command = run_command(workflow, analysis, cause, at, repeatable, rules)
            return replace(workflow, state="running"), (command,)


def _ask(workflow: Workflow, analysis: ExecutionAnalyzed, at: datetime, rules: Rules) -> Step:
    approval = Approval(
        approval_id=ids.effect_id(analysis.event_id, "approval"),
        requested_at=at,
        expires_at=at + rules.approval_ttl,
    )
    asked = ApprovalRequested(
        scope=workflow.scope,
        event_id=ids.effect_id(analysis.event_id, "approval-requested"),
        workflow_id=workflow.workflow_id,
        approval_id=approval.approval_id,
        decision=analysis.decision,
        expires_at=approval.expires_at,
    )
    return replace(workflow, state="awaiting_approval", approval=approval), (asked,)


def _settle(workflow: Workflow, settled: Settled, rules: Rules) -> Step:
    approval, analysis, at = workflow.approval, workflow.analysis, settled.at
    if approval is None or analysis is None or approval.approval_id != settled.approval_id:
        return workflow, ()
    if (at >= approval.expires_at) != (settled.outcome == "expired"):
        return workflow, ()
    told = ApprovalDecided(
        scope=workflow.scope,
        event_id=ids.effect_id(approval.approval_id, "approval-decided"),
        workflow_id=workflow.workflow_id,
        approval_id=approval.approval_id,
        outcome=settled.outcome,
        decided_by=settled.by,
        decided_at=at,
    )
    answered = replace(
        approval,
        outcome=settled.outcome,
        decided_by=settled.by,
        decided_at=at,
        reason=settled.reason,
    )
    workflow = replace(workflow, approval=answered)
    match settled.outcome:
        case "approved":
            repeatable, cause = settled.repeatable_tools, approval.approval_id
            command = run_command(workflow, analysis, cause, at, repeatable, rules)
            after, effects = replace(workflow, state="running"), (command,)
        case "denied":
            after, effects = _fail(workflow, failures.denied(settled.by, settled.reason), at)
        case "expired":
            after, effects = _fail(workflow, failures.expired(), at)
    return after, (told, *effects)


def _fail(workflow: Workflow, error: WorkflowError, at: datetime) -> Step:
    failed = replace(workflow, state="failed", error=error, finished_at=at)
    return failed, (finished(failed, at),)


def _finish(workflow: Workflow, ended: RunEnded) -> Step:
    state: State = "succeeded" if ended.run.success else "failed"
    after = replace(workflow, state=state, run=ended.run, finished_at=ended.at)
    return after, (finished(after, ended.at),)


def finished(workflow: Workflow, at: datetime) -> WorkflowFinished:
    """The statement that a workflow reached its end."""
    run, analysis = workflow.run, workflow.analysis
    return WorkflowFinished(
        scope=workflow.scope,
        event_id=ids.effect_id(workflow.workflow_id, "workflow-finished"),
        workflow_id=workflow.workflow_id,
        status="success" if workflow.state == "succeeded" else "error",
        capability_id=analysis.capability.capability_id if analysis else None,
        result=run.result if run else None,
        error=run.error if run else workflow.error,
        finished_at=at,
    )
