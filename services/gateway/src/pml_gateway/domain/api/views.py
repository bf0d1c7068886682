"""Workflows and approvals as REST shows them (F8)."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, JsonValue

from pml_common.contracts.base import Contract
from pml_common.contracts.capability import NestedCapability
from pml_common.contracts.decision import Decision
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.structure import Diagnostic, DynamicCall, StaticStructure
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.contracts.trace import BranchDecision
from pml_gateway.domain.api.answer import asked_about, status_of, tasks_of, whole_at
from pml_gateway.domain.api.api import LayerAsked, Status, TaskAnswer
from pml_gateway.domain.api.shown import shown_of
from pml_gateway.domain.api.shown_calls import ShownCall, ShownToApprover
from pml_gateway.domain.workflow import layers
from pml_gateway.domain.workflow.workflow import Approval, ApprovalOutcome, Workflow


class WorkflowSummary(Contract):
    """One workflow in a list."""

    workflow_id: UUID
    status: Status
    intent: str | None
    name: str | None
    principal: str
    capability_id: UUID | None
    error: WorkflowError | None
    dry_run: bool
    created_at: AwareDatetime
    finished_at: AwareDatetime | None


class WorkflowPage(Contract):
    """One page of workflows, newest first, and how many there are in all."""

    workflows: tuple[WorkflowSummary, ...]
    total: int


class ApprovalView(Contract):
    """What a person is asked to agree to, and the answer once there is one. `begun`: the run waits
    in its midst, at one call or, with `layer`, between two layers.

    `calls` are all calls, unless there are too many to be read (not `complete`), `dynamic_calls`
    those that only the run can name. Long texts are cut unless it is asked for `whole_at`: `whole`
    tells whether anything is missing here. A decision names `shown_digest`, the digest of what it
    answers; `shown` is what the decision named.
    """

    approval_id: UUID
    workflow_id: UUID
    intent: str | None
    principal: str
    reasons: tuple[str, ...]
    tools: tuple[str, ...]
    calls: tuple[ShownCall, ...]
    dynamic_calls: tuple[DynamicCall, ...]
    complete: bool
    whole: bool
    shown_digest: str
    whole_at: str
    args: JsonObject
    begun: bool
    layer: LayerAsked | None
    requested_at: AwareDatetime
    expires_at: AwareDatetime
    outcome: ApprovalOutcome | None
    decided_by: str | None
    decided_at: AwareDatetime | None
    reason: str | None
    shown: ShownToApprover | None


class ApprovalPage(Contract):
    """One page of approvals that wait, the soonest to expire first, and how many there are."""

    approvals: tuple[ApprovalView, ...]
    total: int


class AnalysisView(Contract):
    """What the analysis found besides structure and decision."""

    code_hash: str
    parameters_schema: JsonObject
    dynamic_calls: tuple[DynamicCall, ...]
    capabilities: tuple[NestedCapability, ...]
    diagnostics: tuple[Diagnostic, ...]


class WorkflowView(WorkflowSummary):
    """One workflow with all that is known of it."""

    code: str
    args: JsonObject
    timeout_s: float
    structure: StaticStructure | None
    decision: Decision | None
    analysis: AnalysisView | None
    approval: ApprovalView | None
    result: JsonValue
    tasks: tuple[TaskAnswer, ...]
    executed_path: tuple[str, ...]
    decisions: tuple[BranchDecision, ...]
    duration_ms: float | None


class ToolList(Contract):
    """The tools of all connected servers, by id order."""

    tools: tuple[ToolDefinition, ...]


class ServerView(Contract):
    """How the connection to one MCP server stands; `tools` counts the last listing, `warnings` say
    what of it is not used. Where its hints are not trusted, they count for nothing. Once
    `announced`, programs that name its tools find them."""

    name: str
    state: Literal["connecting", "ready", "failed"]
    error: str | None
    tools: int
    since: AwareDatetime
    hints_trusted: bool = True
    warnings: tuple[str, ...] = ()
    announced: bool = True


class ServerList(Contract):
    """The connected MCP servers, by name."""

    servers: tuple[ServerView, ...]


def summary_of(workflow: Workflow) -> WorkflowSummary:
    """A workflow in a list."""
    return WorkflowSummary.model_validate(_summary(workflow))


def view_of(workflow: Workflow) -> WorkflowView:
    """A workflow with all that is known of it."""
    analysis, run, requested = workflow.analysis, workflow.run, workflow.requested
    known = run or workflow.parked
    return WorkflowView.model_validate(
        _summary(workflow)
        | {
            "code": requested.code,
            "args": requested.args,
            "timeout_s": workflow.timeout_s,
            "structure": analysis.structure if analysis else None,
            "decision": analysis.decision if analysis else None,
            "analysis": _analysis_of(workflow),
            "approval": approval_of(workflow, workflow.approval) if workflow.approval else None,
            "result": run.result if run else None,
            "tasks": tasks_of(known) if known else (),
            "executed_path": run.executed_path if run else (),
            "decisions": run.decisions if run else (),
            "duration_ms": run.duration_ms if run else None,
        }
    )


def approval_of(workflow: Workflow, approval: Approval, *, whole: bool = False) -> ApprovalView:
    """An approval with what it is about; `whole` with long texts as they are."""
    about = asked_about(workflow, approval)
    brief = shown_of(workflow, approval)
    shown = shown_of(workflow, approval, whole=True) if whole else brief
    return ApprovalView(
        approval_id=approval.approval_id,
        workflow_id=workflow.workflow_id,
        intent=workflow.requested.intent,
        principal=workflow.requested.principal,
        reasons=about.reasons,
        tools=about.tools,
        calls=shown.calls,
        dynamic_calls=shown.dynamic,
        complete=shown.is_all,
        whole=shown.is_whole,
        shown_digest=brief.digest(),
        whole_at=whole_at(workflow),
        args=workflow.requested.args,
        begun=approval.parked is not None,
        layer=layers.asked(workflow, approval.parked),
        requested_at=approval.requested_at,
        expires_at=approval.expires_at,
        outcome=approval.outcome,
        decided_by=approval.decided_by,
        decided_at=approval.decided_at,
        reason=approval.reason,
        shown=approval.shown,
    )


def approvals_of(workflows: Sequence[Workflow], total: int) -> ApprovalPage:
    """One page of workflows that wait, as what they wait for."""
    asked = ((each, each.approval) for each in workflows)
    views = tuple(approval_of(each, approval) for each, approval in asked if approval)
    return ApprovalPage(approvals=views, total=total)


def _summary(workflow: Workflow) -> dict[str, object]:
    requested, analysis, run = workflow.requested, workflow.analysis, workflow.run
    return {
        "workflow_id": workflow.workflow_id,
        "status": status_of(workflow),
        "intent": requested.intent,
        "name": requested.name,
        "principal": requested.principal,
        "capability_id": analysis.capability.capability_id if analysis else None,
        "error": run.error if run else workflow.error,
        "dry_run": requested.dry_run is not None,
        "created_at": requested.requested_at,
        "finished_at": workflow.finished_at,
    }


def _analysis_of(workflow: Workflow) -> AnalysisView | None:
    analysis = workflow.analysis
    if analysis is None:
        return None
    return AnalysisView(
        code_hash=analysis.capability.code_hash,
        parameters_schema=analysis.parameters_schema,
        dynamic_calls=analysis.dynamic_calls,
        capabilities=analysis.capabilities,
        diagnostics=analysis.diagnostics,
    )
