"""Builders of runs to learn from."""

from collections.abc import Sequence
from uuid import UUID, uuid4

from pml_common.contracts import ids
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import NestedRun, RunFinished
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import BranchDecision, TaskResult

SCOPE = Scope(org="acme", project="webapp")
ELSEWHERE = Scope(org="rival", project="webapp")
CODE_HASH = "ab12" * 16
READ = ("n1", "d1", "n2")
CREATE = ("n1", "d1", "n3", "n4")
STARTED_AT = 1_795_253_400_000.0


def finished_run(
    path: tuple[str, ...] = READ,
    *,
    success: bool = True,
    duration_ms: float = 10.0,
    scope: Scope = SCOPE,
    code_hash: str = CODE_HASH,
    started_at: float = STARTED_AT,
    decisions: Sequence[tuple[str, str]] = (),
    calls: Sequence[TaskResult] = (),
    nested: Sequence[NestedRun] = (),
    workflow_id: UUID | None = None,
    dry_run: bool = False,
) -> RunFinished:
    """Build a run of the scope's capability with `code_hash`, in a workflow of its own."""
    workflow_id = workflow_id or uuid4()
    return RunFinished(
        previous=0,
        scope=scope,
        event_id=ids.effect_id(workflow_id, "run-finished_run"),
        workflow_id=workflow_id,
        principal="agent-7",
        capability=CapabilityIdentity(
            capability_id=ids.capability_id(scope, code_hash), code_hash=code_hash
        ),
        intent="make sure the notes exist",
        success=success,
        result={"size": 3} if success else None,
        error=None if success else WorkflowError(kind="tool_error", message="disk full"),
        executed_path=path,
        decisions=tuple(BranchDecision(node_id=n, outcome=o) for n, o in decisions),
        task_results=tuple(calls),
        nested=tuple(nested),
        trace_id=ids.root_trace_id(workflow_id),
        started_at=started_at,
        duration_ms=duration_ms,
        dry_run=dry_run,
    )


def nested_run(
    parent: UUID,
    code_hash: str,
    node_id: str = "n1",
    *,
    occurrence: int = 0,
    success: bool = True,
    started_at: float = STARTED_AT + 1,
) -> NestedRun:
    """Build a tool_call, at a node, of the scope's capability with `code_hash`."""
    return NestedRun(
        trace_id=ids.effect_id(parent, f"{node_id}/{occurrence}"),
        parent_trace_id=parent,
        node_id=node_id,
        occurrence=occurrence,
        capability=CapabilityIdentity(
            capability_id=ids.capability_id(SCOPE, code_hash), code_hash=code_hash
        ),
        name=f"a:c{code_hash[:2]}",
        success=success,
        executed_path=("n1",),
        started_at=started_at,
        duration_ms=4.0,
    )


def tool_call(
    tool: str, start: float, end: float, node_id: str = "n1", parent: UUID | None = None
) -> TaskResult:
    """Build a tool tool_call between two times, in milliseconds, made by the trace `parent`."""
    return TaskResult(
        node_id=node_id,
        parent_trace_id=parent,
        occurrence=0,
        tool=tool,
        args={},
        success=True,
        trace_id=uuid4(),
        started_at=start,
        duration_ms=end - start,
    )
