"""REST views of workflows, approvals and servers."""

from collections.abc import Iterable, Sequence
from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, JsonValue

from pml_common.contracts.base import Contract
from pml_common.contracts.capability import NestedCapability
from pml_common.contracts.decision import Decision
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.gateway import DecidedThrough
from pml_common.contracts.structure import Diagnostic, DynamicCall, StaticStructure
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition
from pml_common.contracts.trace import BranchDecision, LogLine
from pml_gateway.domain.api.api import LayerAsked, Status
from pml_gateway.domain.api.calls import TaskAnswer
from pml_gateway.domain.api.console import shown_console
from pml_gateway.domain.api.list_cursors import After, cut, encode_after
from pml_gateway.domain.api.responses import (
    approval_subject,
    notices_of,
    status_of,
    tasks_of,
    whole_at,
)
from pml_gateway.domain.api.shown import shown_calls_of
from pml_gateway.domain.api.shown_calls import ShownCall, ShownToApprover
from pml_gateway.domain.api.shown_program import cut as cut_code
from pml_gateway.domain.api.shown_program import program_of
from pml_gateway.domain.servers.quarantine import Held, changes
from pml_gateway.domain.workflow import layers
from pml_gateway.domain.workflow.workflow import Approval, ApprovalOutcome, Workflow


class WorkflowSummary(Contract):
    """A workflow in a list. Of one whose data was deleted, only its id, state, caller and times are
    known."""

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
    deleted_at: AwareDatetime | None = None


class WorkflowPage(Contract):
    """A page of workflows, newest first, and their total number; with `next_cursor` there are
    more."""

    workflows: tuple[WorkflowSummary, ...]
    total: int
    next_cursor: str | None = None


class ApprovalView(Contract):
    """An approval, and the decision once there is one. `begun`: the run is parked, at calls or,
    with `layer`, between two layers.

    `code` is the text that runs, and `notices` say what was changed in the one that was sent.
    `calls` are all calls, or the first ones if there are too many (not `complete`); `dynamic_calls`
    are those whose tool is only known at run time. Lists truncate long texts; the path `whole_at`
    shows them whole, and `whole` tells whether nothing is missing in the calls here. A decision
    should name `shown_digest`, the digest of these calls; `shown` is the digest that the decision
    named.
    """

    approval_id: UUID
    workflow_id: UUID
    intent: str | None
    principal: str
    reasons: tuple[str, ...]
    notices: tuple[str, ...]
    tools: tuple[str, ...]
    code: str | None
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
    decided_through: DecidedThrough | None
    reason: str | None
    shown: ShownToApprover | None


class ApprovalPage(Contract):
    """A page of pending approvals, the soonest to expire first, and their total number; with
    `next_cursor` there are more."""

    approvals: tuple[ApprovalView, ...]
    total: int
    next_cursor: str | None = None


class AnalysisView(Contract):
    """Results of the analysis besides structure and decision."""

    code_hash: str
    parameters_schema: JsonObject
    dynamic_calls: tuple[DynamicCall, ...]
    capabilities: tuple[NestedCapability, ...]
    diagnostics: tuple[Diagnostic, ...]


class WorkflowView(WorkflowSummary):
    """A workflow with all its details; `logs` are the last lines of its console, after
    `logs_omitted` others. `notices` are those of its answer about the program and its run."""

    code: str
    args: JsonObject
    timeout_s: float
    structure: StaticStructure | None
    decision: Decision | None
    analysis: AnalysisView | None
    approval: ApprovalView | None
    result: JsonValue
    tasks: tuple[TaskAnswer, ...]
    logs: tuple[LogLine, ...]
    logs_omitted: int
    notices: tuple[str, ...]
    executed_path: tuple[str, ...]
    decisions: tuple[BranchDecision, ...]
    duration_ms: float | None


class ToolList(Contract):
    """The tools of all connected servers, in the order of their ids. `notices` say what is missing
    of them now."""

    tools: tuple[ToolDefinition, ...]
    notices: tuple[str, ...] = ()


class ServerView(Contract):
    """State of the connection to an MCP server. `tools` counts the last listing, `warnings` say
    which parts of it are not used. Untrusted hints are ignored. Once `announced`, programs can call
    its tools. Those that are `quarantined`, by name, are not offered and cannot be called.
    While its `circuit` is `open`, its calls are refused, as `circuit_fault` says; while it is
    `half_open`, one at a time is made. `timeout_s` is the configured time limit of a call.
    `title` is its name in the configuration, where that is another than `name`; `excluded` counts
    the tools that the configuration leaves out; `protocol` is the agreed version of MCP, `version`
    the server's own. One that `needs_login` is not tried again before one. `declares` has its
    capabilities, as `tools` and `resources`. Unless `prefixed`, its tools are listed under
    their own names where that is possible."""

    name: str
    title: str | None = None
    state: Literal["connecting", "ready", "failed"]
    error: str | None
    tools: int
    since: AwareDatetime
    hints_trusted: bool = True
    warnings: tuple[str, ...] = ()
    announced: bool = True
    circuit: Literal["closed", "open", "half_open"] = "closed"
    circuit_fault: str | None = None
    calls_under_way: int = 0
    calls_queued: int = 0
    timeout_s: float | None = None
    excluded: int = 0
    transport: Literal["stdio", "http", "sse"] | None = None
    protocol: str | None = None
    version: str | None = None
    needs_login: bool = False
    declares: tuple[str, ...] = ()
    prefixed: bool = True
    quarantined: tuple[QuarantinedTool, ...] = ()


class FaultyServer(Contract):
    """A configured server that is not connected, because its entry has `faults`."""

    name: str
    faults: tuple[str, ...]


class ReloadView(Contract):
    """The configured servers after a reload, by how they differ from before."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    faulty: tuple[FaultyServer, ...]


class ServerList(Contract):
    """The configured MCP servers, by name. `file_fault` says why their file could not be read
    again; they are then those of before."""

    servers: tuple[ServerView, ...]
    file_fault: str | None = None


class ChangedPart(Contract):
    """A part of a tool's definition that its server changed; `diff` has the lines of a unified
    diff."""

    part: str
    diff: tuple[str, ...]


class ChangedTool(Contract):
    """A tool in quarantine: the `accepted` definition, the one that its server has `listed` since,
    with its `definition_hash`, and the difference."""

    name: str
    definition_hash: str
    accepted: ToolDefinition
    listed: ToolDefinition
    changes: tuple[ChangedPart, ...]


class QuarantineView(Contract):
    """The tools of a server that are in quarantine, by name."""

    server: str
    tools: tuple[ChangedTool, ...]


def quarantine_of(server: str, held: Iterable[Held]) -> QuarantineView:
    """Build the view of a server's tools in quarantine."""
    views = [
        ChangedTool(
            name=one.listed.name,
            definition_hash=one.listed.definition_hash,
            accepted=one.accepted,
            listed=one.listed,
            changes=tuple(ChangedPart(part=each.part, diff=each.diff) for each in changes(one)),
        )
        for one in held
        if one.accepted is not None
    ]
    return QuarantineView(server=server, tools=tuple(sorted(views, key=lambda view: view.name)))


def summary_of(workflow: Workflow) -> WorkflowSummary:
    """Build the list entry of a workflow."""
    return WorkflowSummary.model_validate(_summary(workflow))


def view_of(workflow: Workflow) -> WorkflowView:
    """Build the view of a workflow with all its details."""
    analysis, run, requested = workflow.analysis, workflow.run, workflow.requested
    known = run or workflow.parked
    console = shown_console(known) if known else None
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
            "tasks": tasks_of(known, workflow.grant) if known else (),
            "logs": console.lines if console else (),
            "logs_omitted": console.omitted if console else 0,
            "notices": notices_of(workflow, known),
            "executed_path": run.executed_path if run else (),
            "decisions": run.decisions if run else (),
            "duration_ms": run.duration_ms if run else None,
        }
    )


def approval_of(workflow: Workflow, approval: Approval, *, whole: bool = False) -> ApprovalView:
    """Build the view of an approval; `whole` keeps long texts whole."""
    subject = approval_subject(workflow, approval)
    brief = shown_calls_of(workflow, approval)
    shown = shown_calls_of(workflow, approval, whole=True) if whole else brief
    program = program_of(workflow)
    code = None if program is None else program.code
    return ApprovalView(
        approval_id=approval.approval_id,
        workflow_id=workflow.workflow_id,
        intent=workflow.requested.intent,
        principal=workflow.requested.principal,
        reasons=subject.reasons,
        notices=() if program is None else program.notices,
        tools=subject.tools,
        code=code if whole or code is None else cut_code(code),
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
        decided_through=approval.decided_through,
        reason=approval.reason,
        shown=approval.shown,
    )


def workflows_of(
    found: Sequence[WorkflowSummary], total: int, limit: int | None = None
) -> WorkflowPage:
    """Build a page of workflows, of which one more than `limit` was looked for."""
    page, last = cut(found, len(found) if limit is None else limit)
    after = last and encode_after(After(last.created_at, last.workflow_id))
    return WorkflowPage(workflows=tuple(page), total=total, next_cursor=after)


def approvals_of(
    workflows: Sequence[Workflow], total: int, limit: int | None = None
) -> ApprovalPage:
    """Build a page of the pending approvals of workflows, of which one more than `limit` was looked
    for."""
    pairs = ((each, each.approval) for each in workflows)
    views = [approval_of(each, approval) for each, approval in pairs if approval]
    page, last = cut(views, len(views) if limit is None else limit)
    after = last and encode_after(After(last.expires_at, last.workflow_id))
    return ApprovalPage(approvals=tuple(page), total=total, next_cursor=after)


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
        "deleted_at": workflow.deleted_at,
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
