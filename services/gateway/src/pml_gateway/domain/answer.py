"""From a workflow to what its caller is told (F2)."""

from typing import NamedTuple

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.executor import RunFinished, WantedCall, WorkflowParked
from pml_common.contracts.structure import CapabilityNode, LiteralArgument, TaskNode
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain import layers, parking
from pml_gateway.domain.api import ApprovalAsked, ExecuteResponse, PlannedCall, Status, TaskAnswer
from pml_gateway.domain.preview import PREVIEW_LENGTH, preview
from pml_gateway.domain.workflow import Approval, State, Workflow

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
            if asked.parked is not None:
                answer["tasks"] = tasks_of(asked.parked)
        case Workflow(state="succeeded", run=RunFinished() as run):
            answer |= {"result": run.result, "tasks": tasks_of(run)}
        case Workflow(state="failed", run=RunFinished() as run):
            answer |= {"error": run.error, "tasks": tasks_of(run)}
        case Workflow(state="failed"):
            answer["error"] = workflow.error
            if workflow.parked is not None:
                answer["tasks"] = tasks_of(workflow.parked)
        case _:
            pass
    return ExecuteResponse.model_validate(answer, by_name=True)


def approval_asked(workflow: Workflow, approval: Approval) -> ApprovalAsked:
    """What would run and why a person must agree."""
    about = asked_about(workflow, approval)
    return ApprovalAsked(
        id=approval.approval_id,
        reasons=about.reasons,
        tools=about.tools,
        calls=about.calls,
        begun=approval.parked is not None,
        layer=layers.asked(workflow, approval.parked),
        expires_at=approval.expires_at,
    )


class AskedAbout(NamedTuple):
    """What a person must agree to: why, to which tools, at which calls."""

    reasons: tuple[str, ...]
    tools: tuple[str, ...]
    calls: tuple[PlannedCall, ...]


def asked_about(workflow: Workflow, approval: Approval) -> AskedAbout:
    """The question of an approval: the whole program, or the one call or the layer that its run
    waits at."""
    analysis, parked = workflow.analysis, approval.parked
    layer = layers.asked(workflow, parked)
    if parked is not None and layer is not None:
        reason = parking.sentence(workflow, parked)
        tools = tuple(dict.fromkeys(task.tool for task in layer.next))
        return AskedAbout((reason,), tools, layer.next)
    if parked is not None:
        reason = parking.sentence(workflow, parked)
        calls = parking.wanted_calls(parked)
        tools = tuple(dict.fromkeys(call.tool for call in calls))
        return AskedAbout((reason,), tools, tuple(_planned(workflow, call) for call in calls))
    if analysis is None:
        return AskedAbout((), (), ())
    tools = tuple(tool.tool for tool in analysis.decision.tools if tool.verdict == "ask")
    return AskedAbout(analysis.decision.reasons, tools, planned_calls(analysis))


def _planned(workflow: Workflow, wanted: WantedCall) -> PlannedCall:
    lines = parking.lines_of(workflow, wanted)
    return PlannedCall(
        node_id=wanted.node_id,
        tool=wanted.tool,
        line=lines[0] if len(lines) == 1 else None,
        column=wanted.column,
        arguments={name: LiteralArgument(value=shown) for name, shown in wanted.args.items()},
    )


def planned_calls(analysis: ExecutionAnalyzed) -> tuple[PlannedCall, ...]:
    """Every call site that reaches a tool or capability that a person must agree to, in source
    order."""
    decided = (*analysis.decision.tools, *analysis.capabilities)
    asked = {node_id for one in decided if one.verdict == "ask" for node_id in one.node_ids}
    return tuple(
        PlannedCall(
            node_id=node.id,
            tool=node.tool if isinstance(node, TaskNode) else f"cap:{node.name}",
            line=node.line,
            column=node.column,
            arguments=node.arguments,
        )
        for node in analysis.structure.nodes
        if isinstance(node, TaskNode | CapabilityNode) and node.id in asked
    )


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
