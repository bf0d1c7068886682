"""Example workflows and events."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pydantic import JsonValue

from pml_common.contracts import ids
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityIdentity, NestedCapability
from pml_common.contracts.decision import Decision, Policy, ToolDecision, Verdict
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import (
    Argument,
    CapabilityNode,
    Diagnostic,
    LiteralArgument,
    StaticStructure,
    TaskNode,
)
from pml_common.contracts.tool import ToolAnnotations, ToolDefinition
from pml_common.contracts.trace import CapabilityEnd, TaskResult
from pml_common.signing import SigningKey
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.acceptance import IncomingRequest, Program, Terms, accepted
from pml_gateway.domain.workflow.verdicts import Verdicts
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.domain.workflow.workflow_state import Rules

SCOPE = Scope(org="acme", project="webapp")
ELSEWHERE = Scope(org="rival", project="webapp")
AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
KEY = SigningKey.generate("gateway")
RULES = Rules(key=KEY)
TERMS = Terms()
CODE_HASH = "ab12" * 16
NESTED_HASH = "cd34" * 16
READ = ToolDefinition(server="fs", name="read", annotations=ToolAnnotations(read_only=True))
WRITE = ToolDefinition(server="fs", name="write", description="Writes a file.")
TOOLS = {tool.tool_id: tool for tool in (READ, WRITE)}
VERDICTS = Verdicts((Policy(),), TOOLS)


def later(seconds: float) -> datetime:
    """Return the time `seconds` after AT."""
    return AT + timedelta(seconds=seconds)


def workflow(
    request: ExecuteRequest | None = None,
    *,
    scope: Scope = SCOPE,
    key: str | None = None,
    principal: str = "agent-7",
    at: datetime = AT,
    traceparent: str | None = None,
    is_former: bool = False,
) -> Workflow:
    """Build a workflow that was just accepted, `is_former`: before keys were a principal's own."""
    request, key = request or ExecuteRequest(code="return 1;", intent="count"), key or uuid4().hex
    asked = IncomingRequest(
        scope,
        principal,
        request,
        Program(request.code or ""),
        ids.former_workflow_id(scope, key) if is_former else ids.workflow_id(scope, principal, key),
        key,
        at,
        Policy(),
        traceparent=traceparent,
    )
    return accepted(asked, TERMS, RULES)


def analyzed(
    of: Workflow,
    verdict: Verdict = "allow",
    tools: Sequence[ToolDefinition] = (READ,),
    *,
    name: str | None = None,
) -> ExecutionAnalyzed:
    """Build its analysis: one call of each tool, all of the same verdict."""
    nodes = tuple(
        TaskNode(id=f"n{n}", tool=tool.tool_id, line=n, column=7, arguments=_path())
        for n, tool in enumerate(tools, 1)
    )
    decisions = tuple(
        ToolDecision(
            tool=tool.tool_id,
            verdict=verdict,
            reason=f"{tool.tool_id} is for a person to decide",
            definition_hash=tool.definition_hash,
            node_ids=(f"n{n}",),
        )
        for n, tool in enumerate(tools, 1)
    )
    return ExecutionAnalyzed(
        scope=of.scope,
        event_id=ids.effect_id(of.requested.event_id, "execution-analyzed"),
        workflow_id=of.workflow_id,
        principal=of.requested.principal,
        capability=CapabilityIdentity(
            capability_id=ids.capability_id(of.scope, CODE_HASH), code_hash=CODE_HASH, name=name
        ),
        intent=of.requested.intent,
        code=of.requested.code,
        instrumented=f"/**/{of.requested.code}",
        insertions=((0, 4),),
        structure=StaticStructure(nodes=nodes),
        decision=Decision(
            verdict=verdict, reasons=tuple(each.reason for each in decisions), tools=decisions
        ),
        parameters_schema={"type": "object"},
    )


def unfenced(code: str) -> dict[str, object]:
    """Return the fields of the analysis of a program that was sent in a fence."""
    notices = ("The fence was taken off.",)
    return {"code": code.strip("`\n"), "submitted_code": code, "notices": notices}


def with_capability(analysis: ExecutionAnalyzed, verdict: Verdict = "allow") -> ExecutionAnalyzed:
    """Add a node to the analysis that calls a capability, which only reads."""
    node = CapabilityNode(id="n9", line=9, column=7, name="fs:look", arguments=_path())
    read = ToolDecision(
        tool=READ.tool_id,
        verdict=analysis.decision.verdict,
        reason="through capability fs:look",
        definition_hash=READ.definition_hash,
        node_ids=("n9",),
    )
    nested = NestedCapability(
        capability_id=ids.capability_id(analysis.scope, NESTED_HASH),
        name="fs:look",
        code_hash=NESTED_HASH,
        verdict=verdict,
        reason="a rule",
        called_as=("fs_look",),
        node_ids=("n9",),
    )
    structure = StaticStructure(nodes=(*analysis.structure.nodes, node))
    decision = analysis.decision.model_copy(update={"tools": (*analysis.decision.tools, read)})
    return analysis.model_copy(
        update={"structure": structure, "decision": decision, "capabilities": (nested,)}
    )


def _path() -> dict[str, Argument]:
    return {"path": LiteralArgument(value="/notes.txt")}


def rejected(of: Workflow, *diagnostics: Diagnostic) -> AnalysisRejected:
    """Build the rejection of its program."""
    found = diagnostics or (
        Diagnostic(severity="error", message="expected )", line=2, column=9, source_line="f(;"),
    )
    return AnalysisRejected(
        scope=of.scope,
        event_id=ids.effect_id(of.requested.event_id, "analysis-rejected"),
        workflow_id=of.workflow_id,
        kind="syntax",
        diagnostics=found,
    )


def finished(
    of: Workflow,
    *,
    result: JsonValue = None,
    error: WorkflowError | None = None,
    calls: Sequence[TaskResult] = (),
) -> RunFinished:
    """Build the end of its run, successful unless an error is given."""
    capability = CapabilityIdentity(
        capability_id=ids.capability_id(of.scope, CODE_HASH), code_hash=CODE_HASH
    )
    end = CapabilityEnd(
        trace_id=ids.root_trace_id(of.workflow_id),
        ts=later(1).timestamp() * 1000,
        capability_id=capability.capability_id,
        success=error is None,
        duration_ms=12.5,
        result=result,
        error=error,
    )
    return RunFinished(
        scope=of.scope,
        event_id=ids.effect_id(of.workflow_id, "run-finished"),
        workflow_id=of.workflow_id,
        principal=of.requested.principal,
        capability=capability,
        success=end.success,
        result=result,
        error=error,
        executed_path=("n1",),
        task_results=tuple(calls),
        trace_id=end.trace_id,
        started_at=AT.timestamp() * 1000,
        duration_ms=end.duration_ms,
        entries=(end,),
        previous=0,
    )


def made(
    tool: str = "fs:read",
    *,
    result: JsonValue = None,
    error: WorkflowError | None = None,
    node_id: str = "n1",
    started_at: float = 0.0,
) -> TaskResult:
    """Build a tool call of a run."""
    return TaskResult(
        node_id=node_id,
        occurrence=0,
        tool=tool,
        args={},
        success=error is None,
        result=result,
        error=error,
        trace_id=uuid4(),
        started_at=started_at,
        duration_ms=1.5,
    )
