"""From a workflow to what its caller is told (F2)."""

from typing import Final, NamedTuple

from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.api.api import ApprovalAsked, ExecuteResponse, Status, TaskAnswer
from pml_gateway.domain.api.shown import shown_of
from pml_gateway.domain.workflow import layers, parking
from pml_gateway.domain.workflow.preview import PREVIEW_LENGTH, preview
from pml_gateway.domain.workflow.workflow import Approval, State, Workflow

MOST_TOLD: Final = 100
"""Calls in the answer to an agent; its approver is shown all."""

STATUS: dict[State, Status] = {
    "requested": "running",
    "awaiting_approval": "approval_required",
    "running": "running",
    "succeeded": "success",
    "failed": "error",
}


def status_of(workflow: Workflow) -> Status:
    """How a workflow stands, in the words of the execute response."""
    return STATUS[workflow.state]


def answer_of(workflow: Workflow, capability_name: str | None) -> ExecuteResponse:
    """What the caller of a workflow is told now."""
    answer: dict[str, object] = {"status": status_of(workflow), "workflow_id": workflow.workflow_id}
    if workflow.requested.dry_run is not None:
        answer["dry_run"] = True
    if workflow.analysis is not None:
        answer["capability_id"] = workflow.analysis.capability.capability_id
    if capability_name is not None:
        answer["capability_name"] = capability_name
    match workflow:
        case Workflow(state="awaiting_approval", approval=Approval() as asked):
            answer["approval"] = approval_asked(workflow, asked)
            answer |= _tasks_before(asked.parked)
        case Workflow(state="succeeded", run=RunFinished() as run):
            answer |= {"result": run.result, "tasks": tasks_of(run)}
        case Workflow(state="failed", run=RunFinished() as run):
            answer |= {"error": run.error, "tasks": tasks_of(run)}
        case Workflow(state="failed"):
            answer["error"] = workflow.error
            answer |= _tasks_before(workflow.parked)
        case _:
            pass
    return ExecuteResponse.model_validate(answer, by_name=True)


def _tasks_before(parked: WorkflowParked | None) -> dict[str, object]:
    """What ran until a run was parked, if it was."""
    return {} if parked is None else {"tasks": tasks_of(parked)}


def approval_asked(workflow: Workflow, approval: Approval) -> ApprovalAsked:
    """What would run and why a person must agree."""
    about = asked_about(workflow, approval)
    shown = shown_of(workflow, approval)
    return ApprovalAsked(
        id=approval.approval_id,
        reasons=about.reasons,
        tools=about.tools,
        calls=shown.calls[:MOST_TOLD],
        more_calls=max(0, len(shown.calls) - MOST_TOLD),
        shown_digest=shown.digest(),
        whole_at=whole_at(workflow),
        begun=approval.parked is not None,
        layer=layers.asked(workflow, approval.parked),
        expires_at=approval.expires_at,
    )


def whole_at(workflow: Workflow) -> str:
    """Where an approval is told whole."""
    return f"/api/workflows/{workflow.workflow_id}/approval"


class AskedAbout(NamedTuple):
    """What a person must agree to: why, and to which tools."""

    reasons: tuple[str, ...]
    tools: tuple[str, ...]


def asked_about(workflow: Workflow, approval: Approval) -> AskedAbout:
    """The question of an approval: the whole program, or the one call or the layer that its run
    waits at."""
    analysis, parked = workflow.analysis, approval.parked
    layer = layers.asked(workflow, parked)
    if parked is not None and layer is not None:
        reason = parking.sentence(workflow, parked)
        tools = tuple(dict.fromkeys(task.tool for task in layer.next))
        return AskedAbout((reason,), tools)
    if parked is not None:
        reason = parking.sentence(workflow, parked)
        tools = tuple(dict.fromkeys(call.tool for call in parking.wanted_calls(parked)))
        return AskedAbout((reason,), tools)
    if analysis is None:
        return AskedAbout((), ())
    tools = tuple(tool.tool for tool in analysis.decision.tools if tool.verdict == "ask")
    return AskedAbout(analysis.decision.reasons, tools)


def tasks_of(run: RunFinished | WorkflowParked) -> tuple[TaskAnswer, ...]:
    """The tool calls of a run, in the order they started."""
    calls = sorted(run.task_results, key=lambda call: call.started_at)
    return tuple(_task(call) for call in calls)


def _task(call: TaskResult) -> TaskAnswer:
    failed = call.error.message if call.error else ""
    return TaskAnswer(
        id=f"{call.node_id}.{call.occurrence}",
        node_id=call.node_id,
        tool=call.tool,
        success=call.success,
        duration_ms=call.duration_ms,
        mocked=call.mocked,
        preview=preview(call.result) if call.success else failed[:PREVIEW_LENGTH],
    )
