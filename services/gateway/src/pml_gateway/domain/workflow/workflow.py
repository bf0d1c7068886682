"""The life of a workflow, as a pure process manager.

requested → awaiting_approval | running → succeeded | failed. What follows from a step is messages,
their ids made from their cause, so that a step taken again states the same.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from pml_common.contracts import ids
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.decision import Decision
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished, RunWorkflow, WorkflowParked
from pml_common.contracts.gateway import (
    ApprovalDecided,
    ApprovalRequested,
    WorkflowFinished,
)
from pml_gateway.domain.servers.named_servers import with_absent
from pml_gateway.domain.workflow import failures, parking
from pml_gateway.domain.workflow.cancellation import cancel_run, cancelled
from pml_gateway.domain.workflow.events import (
    Analyzed,
    Cancelled,
    Decided,
    Due,
    GivenUp,
    NotAnalyzed,
    Parked,
    RunEnded,
    WorkflowEvent,
)
from pml_gateway.domain.workflow.given_up import ends, given_up
from pml_gateway.domain.workflow.provenance import is_of
from pml_gateway.domain.workflow.rules import Rules
from pml_gateway.domain.workflow.run_command import granted, run_command
from pml_gateway.domain.workflow.verdicts import judged
from pml_gateway.domain.workflow.workflow_state import (
    Approval,
    ApprovalOutcome,
    State,
    Workflow,
    hopeless_at,
)

__all__ = ["Approval", "ApprovalOutcome", "State", "Step", "Workflow", "advance"]

CLOCK = "the clock"
"""Who decides when nobody does."""

Step = tuple[Workflow, tuple[Message, ...]]


def advance(workflow: Workflow, workflow_event: WorkflowEvent, rules: Rules) -> Step:
    """The workflow after something happened, and what follows from it; what does not fit the
    state, or concerns another workflow, changes nothing."""
    match workflow.state, workflow_event:
        case "requested", Analyzed() if is_of(workflow.requested, workflow_event.analysis):
            analysis = judged(workflow_event.analysis, workflow_event.verdicts)
            return _decide(replace(workflow, analysis=analysis), analysis, workflow_event, rules)
        case "requested", NotAnalyzed() if _concerns(workflow, workflow_event.rejection):
            error = failures.not_analyzed(workflow_event.rejection)
            error = with_absent(error, workflow_event.rejection, workflow_event.absent)
            return _fail(workflow, error, workflow_event.at)
        case "awaiting_approval", Decided():
            return _settle(workflow, workflow_event, rules)
        case "requested" | "awaiting_approval" | "running", Cancelled():
            return _cancel(workflow, workflow_event, rules)
        case "running", Parked() if _concerns(workflow, workflow_event.fact):
            return _park(workflow, workflow_event, rules)
        case "running", RunEnded() if _concerns(workflow, workflow_event.run):
            return _finish(workflow, workflow_event)
        case "requested" | "running", GivenUp() if ends(workflow, workflow_event):
            return _fail(workflow, given_up(workflow, workflow_event), workflow_event.at)
        case _, Due() if workflow.due_at is not None and workflow.due_at <= workflow_event.at:
            return _handle_timeout(workflow, workflow_event, rules)
        case _:
            return workflow, ()


def _concerns(
    workflow: Workflow,
    message: AnalysisRejected | WorkflowParked | RunFinished,
) -> bool:
    return (message.scope, message.workflow_id) == (workflow.scope, workflow.workflow_id)


def _decide(
    workflow: Workflow, analysis: ExecutionAnalyzed, analyzed: Analyzed, rules: Rules
) -> Step:
    decision, at = analysis.decision, analyzed.at
    if analyzed.name_holder is not None:
        name = workflow.requested.name
        return _fail(workflow, failures.name_taken(name, analyzed.name_holder), at)
    if decision.verdict == "deny":
        return _fail(workflow, failures.forbidden_by_policy(decision), at)
    if decision.verdict == "ask":
        return _ask(workflow, analysis, decision, at, rules)
    return _begin(workflow, analysis, analyzed, rules)


def _park(workflow: Workflow, parked: Parked, rules: Rules) -> Step:
    """Ask a person about the call that the run waits at; what an earlier command's run once waited
    for is settled."""
    fact = parked.fact
    if fact.command_id != workflow.run_command_id:
        return workflow, ()
    if workflow.error is not None:
        why, kind = workflow.error.message, workflow.error.kind
        return _fail(workflow, parking.stopped(workflow, fact, why, kind), parked.at)
    why_not = parking.unaskable(workflow, parked)
    if why_not is not None:
        return _fail(workflow, parking.stopped(workflow, fact, why_not), parked.at)
    asked = parking.as_asked(parked)
    return _ask(workflow, asked, parking.question(workflow, asked), parked.at, rules)


def _ask(
    workflow: Workflow,
    cause: ExecutionAnalyzed | WorkflowParked,
    decision: Decision,
    at: datetime,
    rules: Rules,
) -> Step:
    expires_at = at + rules.approval_ttl
    approval = Approval(
        ids.effect_id(cause.event_id, "approval"),
        at,
        expires_at,
        parked=cause if isinstance(cause, WorkflowParked) else None,
    )
    asked = ApprovalRequested(
        scope=workflow.scope,
        event_id=ids.effect_id(approval.approval_id, "approval-requested"),
        workflow_id=workflow.workflow_id,
        approval_id=approval.approval_id,
        decision=decision,
        expires_at=expires_at,
    )
    after = replace(workflow, state="awaiting_approval", approval=approval, due_at=expires_at)
    return after, (asked,)


def _settle(workflow: Workflow, settled: Decided, rules: Rules) -> Step:
    approval, analysis = workflow.approval, workflow.analysis
    if approval is None or analysis is None or approval.approval_id != settled.approval_id:
        return workflow, ()
    if settled.at >= approval.expires_at:
        return workflow, ()
    by, at, reason = settled.by, settled.at, settled.reason
    decided, told = _answered(workflow, approval, settled.outcome, by, at, reason)
    if settled.outcome == "approved" and settled.forbidden is not None:
        after, effects = _fail(decided, _forbidden(workflow, settled.forbidden), at)
    elif settled.outcome == "approved":
        after, effects = _begin(decided, analysis, settled, rules)
    else:
        after, effects = _fail(decided, _said_no(workflow, settled), at)
    return after, (told, *effects)


def _forbidden(workflow: Workflow, why: str) -> WorkflowError:
    """The policy forbids now what waited for approval."""
    parked = workflow.parked
    if parked is None:
        return WorkflowError(kind="denied", message=f"The policy forbids it now: {why}")
    return parking.stopped(workflow, parked, f"the policy forbids it now: {why}")


def _said_no(workflow: Workflow, settled: Decided) -> WorkflowError:
    by, reason, replan, parked = settled.by, settled.reason, settled.replan, workflow.parked
    if parked is None:
        return failures.denied(by, reason, replan=replan)
    what = parking.name_of(workflow, parked)
    why = failures.said_no(by, reason, replan=replan, what=what)
    return parking.stopped(workflow, parked, f"{why}. {failures.ANOTHER}" if replan else why)


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


def _cancel(workflow: Workflow, wish: Cancelled, rules: Rules) -> Step:
    """End at once what no executor has in hand; have the one that runs it end the rest."""
    error, approval = cancelled(workflow, wish), workflow.approval
    run = _command_of(workflow, wish)
    if run is not None:
        if workflow.error is not None:
            return workflow, ()
        after = replace(workflow, error=error, due_at=wish.at + rules.patience)
        return after, (cancel_run(run, error),)
    if approval is None or workflow.state != "awaiting_approval":
        return _fail(workflow, error, wish.at)
    decided, told = _answered(workflow, approval, "denied", wish.by, wish.at, wish.reason)
    after, effects = _fail(decided, error, wish.at)
    return after, (told, *effects)


def _handle_timeout(workflow: Workflow, due: Due, rules: Rules) -> Step:
    """End what nobody approved and what nobody will finish any more; ask again, under the same
    ids and ever more rarely, for what stands still."""
    approval, at = workflow.approval, due.at
    if workflow.state == "awaiting_approval" and approval is not None:
        decided, told = _answered(workflow, approval, "expired", CLOCK, at)
        late, parked = failures.expired(), workflow.parked
        if parked is not None:
            late = parking.stopped(workflow, parked, late.message)
        after, effects = _fail(decided, late, at)
        return after, (told, *effects)
    hopeless = hopeless_at(workflow, rules, due.without_bus)
    if at >= hopeless:
        return _fail(workflow, failures.abandoned(workflow), at)
    rarely = min(hopeless, at + max(rules.patience, at - workflow.requested.requested_at))
    run = _command_of(workflow, due)
    if run is not None:
        if workflow.error is not None:
            return replace(workflow, due_at=rarely), (cancel_run(run, workflow.error),)
        after, effects = _run(workflow, run, due, rules)
        return replace(after, due_at=min(hopeless, max(rarely, after.due_at or at))), effects
    return replace(workflow, due_at=rarely), (workflow.requested,)


def _begin(
    workflow: Workflow, analysis: ExecutionAnalyzed, now: Analyzed | Decided, rules: Rules
) -> Step:
    grant = granted(workflow, analysis, now, rules)
    command = run_command(workflow, analysis, grant, now)
    return _run(replace(workflow, grant=grant), command, now, rules)


def _run(
    workflow: Workflow, command: RunWorkflow, now: Analyzed | Decided | Due, rules: Rules
) -> Step:
    due_at = now.at + timedelta(seconds=workflow.timeout_s) + rules.patience
    return replace(workflow, state="running", due_at=due_at), (command,)


def _command_of(workflow: Workflow, now: Cancelled | Due) -> RunWorkflow | None:
    """The command of the run that goes on, made anew."""
    analysis, grant = workflow.analysis, workflow.grant
    if workflow.state != "running" or analysis is None or grant is None:
        return None
    return run_command(workflow, analysis, grant, now)


def _fail(workflow: Workflow, error: WorkflowError, at: datetime) -> Step:
    return _end(replace(workflow, state="failed", error=error), at)


def _finish(workflow: Workflow, ended: RunEnded) -> Step:
    state: State = "succeeded" if ended.run.success else "failed"
    return _end(replace(workflow, state=state, run=ended.run, error=None), ended.at)


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
