"""Responses to the callers of workflows."""

from collections.abc import Set
from typing import Final, NamedTuple

from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.grant import Grant
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.api.api import ApprovalAsked, ExecuteResponse, Status
from pml_gateway.domain.api.calls import TaskAnswer, counted
from pml_gateway.domain.api.console import console_notices, shown_console
from pml_gateway.domain.api.next_step import Next, after_running, until_approved
from pml_gateway.domain.api.shown import shown_calls_of
from pml_gateway.domain.api.shown_program import changed_program_of, cut
from pml_gateway.domain.workflow import layers, parking
from pml_gateway.domain.workflow.preview import PREVIEW_LENGTH, preview
from pml_gateway.domain.workflow.workflow import Approval, State, Workflow

MAX_CALLS_IN_RESPONSE: Final = 100
"""More calls are only shown to the approver."""

STATUS: dict[State, Status] = {
    "requested": "running",
    "awaiting_approval": "approval_required",
    "running": "running",
    "succeeded": "success",
    "failed": "error",
}


def status_of(workflow: Workflow) -> Status:
    """Return the response status of a workflow."""
    return STATUS[workflow.state]


def execute_response(workflow: Workflow, capability_name: str | None) -> ExecuteResponse:
    """Build the response for the workflow's current state."""
    response: dict[str, object] = {
        "status": status_of(workflow),
        "workflow_id": workflow.workflow_id,
    }
    if workflow.requested.dry_run is not None:
        response["dry_run"] = True
    if workflow.analysis is not None:
        response["capability_id"] = workflow.analysis.capability.capability_id
        if workflow.analysis.diagnostics:
            response["warnings"] = workflow.analysis.diagnostics
        if workflow.analysis.notices:
            response["notices"] = workflow.analysis.notices
    if capability_name is not None:
        response["capability_name"] = capability_name
    match workflow:
        case Workflow(state="awaiting_approval", approval=Approval() as approval):
            asked = approval_asked(workflow, approval)
            response |= {"approval": asked, "next": _next(workflow, approval, asked)}
            response |= _made(workflow, approval.parked)
        case Workflow(state="succeeded", run=RunFinished() as run):
            response |= {"result": run.result, **_made(workflow, run)}
        case Workflow(state="failed", run=RunFinished() as run):
            response |= {"error": run.error, **_made(workflow, run)}
        case Workflow(state="failed"):
            response["error"] = workflow.error
            response |= _made(workflow, workflow.parked)
        case _:
            response["next"] = after_running(workflow.workflow_id)
    return ExecuteResponse.model_validate(response, by_name=True)


def _next(workflow: Workflow, approval: Approval, asked: ApprovalAsked) -> Next:
    """Return the way on from a pending approval."""
    return until_approved(
        workflow.workflow_id,
        approval.expires_at,
        approval.approval_id if asked.begun else None,
        is_layer=asked.layer is not None,
    )


def _made(workflow: Workflow, run: RunFinished | WorkflowParked | None) -> dict[str, object]:
    """Return the calls of a run and the lines it wrote; nothing of one that never began."""
    if run is None:
        return {}
    tasks = tasks_of(run, workflow.grant)
    made: dict[str, object] = {"calls": counted(tasks), "tasks": tasks}
    console, notices = shown_console(run), notices_of(workflow, run)
    if console.lines:
        made["logs"] = console.lines
    if console.omitted:
        made["logs_omitted"] = console.omitted
    if notices:
        made["notices"] = notices
    return made


def notices_of(workflow: Workflow, run: RunFinished | WorkflowParked | None) -> tuple[str, ...]:
    """Return what a caller should know of a workflow and its run; first, if its result is void,
    that nothing is to be repeated."""
    changed = workflow.analysis.notices if workflow.analysis else ()
    if run is None:
        return changed
    lost, first = (run.notices, int(run.void)) if isinstance(run, RunFinished) else ((), 0)
    return *lost[:first], *changed, *lost[first:], *console_notices(run.workflow_id, run)


def approval_asked(workflow: Workflow, approval: Approval) -> ApprovalAsked:
    """Build the pending approval: what would run, and why a person must approve."""
    subject = approval_subject(workflow, approval)
    shown, changed = shown_calls_of(workflow, approval), changed_program_of(workflow)
    return ApprovalAsked(
        id=approval.approval_id,
        reasons=subject.reasons,
        tools=subject.tools,
        code=None if changed is None else cut(changed.code),
        calls=shown.calls[:MAX_CALLS_IN_RESPONSE],
        more_calls=max(0, len(shown.calls) - MAX_CALLS_IN_RESPONSE),
        shown_digest=shown.digest(),
        whole_at=whole_at(workflow),
        begun=approval.parked is not None,
        layer=layers.asked(workflow, approval.parked),
        expires_at=approval.expires_at,
    )


def whole_at(workflow: Workflow) -> str:
    """Return the path at which REST shows the whole approval."""
    return f"/api/workflows/{workflow.workflow_id}/approval"


class ApprovalSubject(NamedTuple):
    """Why a person must approve, and which tools."""

    reasons: tuple[str, ...]
    tools: tuple[str, ...]


def approval_subject(workflow: Workflow, approval: Approval) -> ApprovalSubject:
    """Return the subject of an approval: the whole program, or the calls or the layer at which its
    run is parked."""
    analysis, parked = workflow.analysis, approval.parked
    layer = layers.asked(workflow, parked)
    if parked is not None and layer is not None:
        reason = parking.sentence(workflow, parked)
        tools = tuple(dict.fromkeys(task.tool for task in layer.next))
        return ApprovalSubject((reason,), tools)
    if parked is not None:
        reason = parking.sentence(workflow, parked)
        tools = tuple(dict.fromkeys(call.tool for call in parking.wanted_calls(parked)))
        return ApprovalSubject((reason,), tools)
    if analysis is None:
        return ApprovalSubject((), ())
    tools = tuple(tool.tool for tool in analysis.decision.tools if tool.verdict == "ask")
    return ApprovalSubject(analysis.decision.reasons, tools)


def tasks_of(
    run: RunFinished | WorkflowParked, grant: Grant | None = None
) -> tuple[TaskAnswer, ...]:
    """Return the tool calls of a run in the order of their starts."""
    calls = sorted(run.task_results, key=lambda call: call.started_at)
    approved = _approved(grant)
    return tuple(task_answer(call, approved=call.tool in approved) for call in calls)


def _approved(grant: Grant | None) -> Set[str]:
    """Return the tools whose calls a person allowed."""
    if grant is None or grant.approved_by is None:
        return frozenset()
    return {*grant.bound, *(each.tool for each in (*grant.calls, *grant.rest))}


def task_answer(call: TaskResult, *, approved: bool = False) -> TaskAnswer:
    """Build the entry of a tool call, with a preview of its result or error."""
    failed = call.error.message if call.error else ""
    return TaskAnswer(
        id=f"{call.node_id}.{call.occurrence}",
        node_id=call.node_id,
        tool=call.tool,
        success=call.success,
        duration_ms=call.duration_ms,
        mocked=call.mocked,
        approved=approved,
        preview=preview(call.result) if call.success else failed[:PREVIEW_LENGTH],
    )
