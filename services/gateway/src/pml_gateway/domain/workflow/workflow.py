"""The state machine of a workflow: a pure process manager.

requested → awaiting_approval | running → succeeded | failed. A step yields messages, whose ids are
derived from their cause, so that a repeated step yields the same ones.
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
    DecidedThrough,
    WorkflowFinished,
)
from pml_gateway.domain.servers.named_servers import with_absent
from pml_gateway.domain.workflow import failures, parking
from pml_gateway.domain.workflow.cancellation import cancel_run, cancelled
from pml_gateway.domain.workflow.direct_call import lost_call
from pml_gateway.domain.workflow.events import (
    Analyzed,
    Cancelled,
    Decided,
    Due,
    GivenUp,
    NotAnalyzed,
    Parked,
    WorkflowEvent,
)
from pml_gateway.domain.workflow.given_up import ends, given_up
from pml_gateway.domain.workflow.provenance import is_analysis_of
from pml_gateway.domain.workflow.run_command import granted, run_command
from pml_gateway.domain.workflow.run_end import ended_at, finished_id
from pml_gateway.domain.workflow.verdicts import with_stricter_verdicts
from pml_gateway.domain.workflow.workflow_state import (
    Approval,
    ApprovalOutcome,
    Rules,
    State,
    Workflow,
    abandoned_at,
)

__all__ = ["Approval", "ApprovalOutcome", "State", "Step", "Workflow", "advance", "run_ended"]

CLOCK = "the clock"
"""`decided_by` of an approval that expired."""

Step = tuple[Workflow, tuple[Message, ...]]


def advance(workflow: Workflow, workflow_event: WorkflowEvent, rules: Rules) -> Step:
    """Return the workflow after an event, and the messages to publish; an event that does not fit
    the state, or concerns another workflow, changes nothing."""
    match workflow.state, workflow_event:
        case "requested", Analyzed() if is_analysis_of(workflow.requested, workflow_event.analysis):
            return _analyze(workflow, workflow_event, rules)
        case "requested", NotAnalyzed() if _concerns(workflow, workflow_event.rejection):
            rejection = with_absent(workflow_event.rejection, workflow_event.absent)
            return _fail(workflow, failures.not_analyzed(rejection), workflow_event.at)
        case "awaiting_approval", Decided():
            return _decide(workflow, workflow_event, rules)
        case "requested" | "awaiting_approval" | "running", Cancelled():
            return _cancel(workflow, workflow_event, rules)
        case "running", Parked() if _concerns(workflow, workflow_event.message):
            return _park(workflow, workflow_event, rules)
        case "requested" | "running", GivenUp() if ends(workflow, workflow_event):
            return _fail(workflow, given_up(workflow, workflow_event), workflow_event.at)
        case _, Due() if workflow.due_at is not None and workflow.due_at <= workflow_event.at:
            return _handle_timeout(workflow, workflow_event, rules)
        case _:
            return workflow, ()


def run_ended(workflow: Workflow, run: RunFinished) -> Workflow:
    """Return the workflow after the end of its run; the same one if it does not run. Nothing is
    published: the run's end is."""
    if workflow.state != "running" or not _concerns(workflow, run):
        return workflow
    state: State = "succeeded" if run.success else "failed"
    kept, at = run.without_entries(), ended_at(run)
    return replace(workflow, state=state, run=kept, error=None, finished_at=at, due_at=None)


def _concerns(
    workflow: Workflow,
    message: AnalysisRejected | WorkflowParked | RunFinished,
) -> bool:
    return (message.scope, message.workflow_id) == (workflow.scope, workflow.workflow_id)


def _analyze(before: Workflow, analyzed: Analyzed, rules: Rules) -> Step:
    analysis = with_stricter_verdicts(analyzed.analysis, analyzed.verdicts)
    workflow = replace(before, analysis=analysis)
    decision, at = analysis.decision, analyzed.at
    if analyzed.name_refused is not None:
        return _fail(workflow, failures.name_refused(analyzed.name_refused), at)
    if decision.verdict == "deny":
        return _fail(workflow, failures.forbidden_by_policy(decision), at)
    if decision.verdict == "ask":
        return _request_approval(workflow, analysis, decision, at, rules)
    return _grant_and_run(workflow, analysis, analyzed, rules)


def _park(workflow: Workflow, parked: Parked, rules: Rules) -> Step:
    """Request approval of the calls at which the run is parked. A park under an earlier command is
    ignored: it was decided."""
    message = parked.message
    if message.command_id != workflow.run_command_id:
        return workflow, ()
    if workflow.error is not None:
        why, kind = workflow.error.message, workflow.error.kind
        return _fail(workflow, parking.stopped(workflow, message, why, kind), parked.at)
    why_not = parking.why_unapprovable(workflow, parked)
    if why_not is not None:
        return _fail(workflow, parking.stopped(workflow, message, why_not), parked.at)
    cause = parking.with_definitions(parked)
    question = parking.question(workflow, cause)
    return _request_approval(workflow, cause, question, parked.at, rules)


def _request_approval(
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
    requested = ApprovalRequested(
        scope=workflow.scope,
        event_id=ids.effect_id(approval.approval_id, "approval-requested"),
        workflow_id=workflow.workflow_id,
        approval_id=approval.approval_id,
        decision=decision,
        expires_at=expires_at,
    )
    after = replace(workflow, state="awaiting_approval", approval=approval, due_at=expires_at)
    return after, (requested,)


def _decide(workflow: Workflow, event: Decided, rules: Rules) -> Step:
    approval, analysis = workflow.approval, workflow.analysis
    if approval is None or analysis is None or approval.approval_id != event.approval_id:
        return workflow, ()
    if event.at >= approval.expires_at:
        return workflow, ()
    by, at, reason, through = event.by, event.at, event.reason, event.through
    decided, message = _record_decision(workflow, approval, event.outcome, by, at, reason, through)
    if event.outcome == "approved" and event.forbidden is not None:
        after, effects = _fail(decided, _forbidden(workflow, event.forbidden), at)
    elif event.outcome == "approved":
        after, effects = _grant_and_run(decided, analysis, event, rules)
    else:
        after, effects = _fail(decided, _denied(workflow, event), at)
    return after, (message, *effects)


def _forbidden(workflow: Workflow, why: str) -> WorkflowError:
    """Return the error if the policy forbids by now what waited for approval."""
    parked = workflow.parked
    if parked is None:
        return WorkflowError(kind="denied", message=f"The policy forbids it now: {why}")
    return parking.stopped(workflow, parked, f"the policy forbids it now: {why}")


def _denied(workflow: Workflow, event: Decided) -> WorkflowError:
    by, reason, replan, parked = event.by, event.reason, event.replan, workflow.parked
    if parked is None:
        return failures.denied(by, reason, replan=replan)
    what = parking.name_of(workflow, parked)
    why = failures.denial(by, reason, replan=replan, what=what)
    return parking.stopped(workflow, parked, f"{why}. {failures.ANOTHER}" if replan else why)


def _record_decision(
    workflow: Workflow,
    approval: Approval,
    outcome: ApprovalOutcome,
    by: str,
    at: datetime,
    reason: str | None = None,
    through: DecidedThrough | None = None,
) -> tuple[Workflow, ApprovalDecided]:
    message = ApprovalDecided(
        scope=workflow.scope,
        event_id=ids.effect_id(approval.approval_id, "approval-decided"),
        workflow_id=workflow.workflow_id,
        approval_id=approval.approval_id,
        outcome=outcome,
        decided_by=by,
        decided_at=at,
        decided_through=through,
    )
    answer = replace(
        approval,
        outcome=outcome,
        decided_by=by,
        decided_at=at,
        reason=reason,
        decided_through=through,
    )
    return replace(workflow, approval=answer), message


def _cancel(workflow: Workflow, event: Cancelled, rules: Rules) -> Step:
    """End at once what is not running; have the executor end a run."""
    error, approval = cancelled(workflow, event), workflow.approval
    run = _current_command(workflow, event)
    if run is not None:
        if workflow.error is not None:
            return workflow, ()
        after = replace(workflow, error=error, due_at=event.at + rules.patience)
        return after, (cancel_run(run, error),)
    if approval is None or workflow.state != "awaiting_approval":
        return _fail(workflow, error, event.at)
    by, at, reason = event.by, event.at, event.reason
    decided, message = _record_decision(workflow, approval, "denied", by, at, reason)
    after, effects = _fail(decided, error, at)
    return after, (message, *effects)


def _handle_timeout(workflow: Workflow, due: Due, rules: Rules) -> Step:
    """End expired approvals, abandoned workflows and lost direct calls; publish again, under the
    same ids and at growing intervals, the command of a workflow that makes no progress. A command
    that is still held for an executor is not: a second one would take the run from the first."""
    approval, at = workflow.approval, due.at
    if workflow.requested.direct_tool is not None:
        return _fail(workflow, lost_call(workflow), at)
    if workflow.state == "awaiting_approval" and approval is not None:
        decided, message = _record_decision(workflow, approval, "expired", CLOCK, at)
        error, parked = failures.expired(), workflow.parked
        if parked is not None:
            error = parking.stopped(workflow, parked, error.message)
        after, effects = _fail(decided, error, at)
        return after, (message, *effects)
    latest = abandoned_at(workflow, rules, due.without_bus)
    if at >= latest:
        return _fail(workflow, failures.abandoned(workflow), at)
    next_due = min(latest, at + max(rules.patience, at - workflow.requested.requested_at))
    run = _current_command(workflow, due)
    if run is not None:
        if workflow.error is not None:
            return replace(workflow, due_at=next_due), (cancel_run(run, workflow.error),)
        if due.is_held:
            return replace(workflow, due_at=next_due), ()
        after, effects = _dispatch(workflow, run, due, rules)
        return replace(after, due_at=min(latest, max(next_due, after.due_at or at))), effects
    return replace(workflow, due_at=next_due), (workflow.requested,)


def _grant_and_run(
    workflow: Workflow, analysis: ExecutionAnalyzed, now: Analyzed | Decided, rules: Rules
) -> Step:
    grant = granted(workflow, analysis, now, rules)
    command = run_command(workflow, analysis, grant, now)
    return _dispatch(replace(workflow, grant=grant), command, now, rules)


def _dispatch(
    workflow: Workflow, command: RunWorkflow, now: Analyzed | Decided | Due, rules: Rules
) -> Step:
    due_at = now.at + timedelta(seconds=workflow.timeout_s) + rules.patience
    return replace(workflow, state="running", due_at=due_at), (command,)


def _current_command(workflow: Workflow, now: Cancelled | Due) -> RunWorkflow | None:
    """Build the command of the current run again; None if it does not run."""
    analysis, grant = workflow.analysis, workflow.grant
    if workflow.state != "running" or analysis is None or grant is None:
        return None
    return run_command(workflow, analysis, grant, now)


def _fail(workflow: Workflow, error: WorkflowError, at: datetime) -> Step:
    analysis = workflow.analysis
    finished = WorkflowFinished(
        scope=workflow.scope,
        event_id=finished_id(workflow.workflow_id),
        workflow_id=workflow.workflow_id,
        status="error",
        capability_id=analysis.capability.capability_id if analysis else None,
        error=error,
        finished_at=at,
    )
    after = replace(workflow, state="failed", error=error, finished_at=at, due_at=None)
    return after, (finished,)
