"""From a workflow to what its caller is told (F2)."""

import json

from pydantic import JsonValue

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.structure import CapabilityNode, TaskNode
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.api import ApprovalAsked, ExecuteResponse, PlannedCall, Status, TaskAnswer
from pml_gateway.domain.workflow import Approval, State, Workflow

PREVIEW_LENGTH = 240
"""Characters (F3)."""

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
    if workflow.analysis is not None:
        answer["capability_id"] = workflow.analysis.capability.capability_id
    if capability_name is not None:
        answer["capability_name"] = capability_name
    match workflow:
        case Workflow(state="awaiting_approval", approval=Approval() as asked):
            answer["approval"] = approval_asked(workflow, asked)
        case Workflow(state="succeeded", run=RunFinished() as run):
            answer |= {"result": run.result, "tasks": tasks_of(run)}
        case Workflow(state="failed", run=RunFinished() as run):
            answer |= {"error": run.error, "tasks": tasks_of(run)}
        case Workflow(state="failed"):
            answer["error"] = workflow.error
        case _:
            pass
    return ExecuteResponse.model_validate(answer, by_name=True)


def approval_asked(workflow: Workflow, approval: Approval) -> ApprovalAsked:
    """What would run and why a person must agree."""
    analysis = workflow.analysis
    return ApprovalAsked(
        id=approval.approval_id,
        reasons=analysis.decision.reasons if analysis else (),
        tools=asked_tools(analysis) if analysis else (),
        calls=planned_calls(analysis) if analysis else (),
        expires_at=approval.expires_at,
    )


def asked_tools(analysis: ExecutionAnalyzed) -> tuple[str, ...]:
    """The tools that a person must agree to."""
    return tuple(tool.tool for tool in analysis.decision.tools if tool.verdict == "ask")


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


def tasks_of(run: RunFinished) -> tuple[TaskAnswer, ...]:
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
        preview=_preview(call.result) if call.success else failed[:PREVIEW_LENGTH],
    )


def _preview(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= PREVIEW_LENGTH else text[: PREVIEW_LENGTH - 1] + "…"
