"""Builders of capabilities and traces to draw."""

from collections.abc import Sequence
from uuid import UUID, uuid4

from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.learner import ExecutionTrace
from pml_common.contracts.structure import (
    CapabilityNode,
    Coverage,
    DecisionNode,
    Edge,
    LoopNode,
    Node,
    StaticStructure,
    TaskNode,
)
from pml_common.contracts.trace import TaskResult
from services.gateway.tests.support.builders import workflow
from services.gateway.tests.support.fakes import record

NAME = "fs:report"
NESTED = UUID(int=77)


def node(id_: str, called: str = "", capability: UUID | None = None) -> Node:
    """Build a node: a decision (`d…`), a loop (`l…`), a call of a capability (`cap:…`) or tool."""
    if id_.startswith("d"):
        return DecisionNode(id=id_, line=1, column=1, condition="ok")
    if id_.startswith("l"):
        return LoopNode(id=id_, line=1, column=1, kind="for", over="items")
    if called.startswith("cap:"):
        named, own = called.removeprefix("cap:"), capability and str(capability)
        return CapabilityNode(id=id_, line=1, column=1, name=named, capability_id=own)
    return TaskNode(id=id_, line=1, column=1, tool=called)


def edge(from_: str, to: str, outcome: str | None = None) -> Edge:
    """Build a step of a program, conditional with an outcome."""
    type_ = "sequence" if outcome is None else "conditional"
    return Edge(from_=from_, to=to, type=type_, outcome=outcome)


def data(from_: str, to: str, coverage: Coverage | None) -> Edge:
    """Build a flow of data."""
    return Edge(from_=from_, to=to, type="provides", coverage=coverage)


def drawn(nodes: Sequence[Node] = (), edges: Sequence[Edge] = ()) -> CapabilityRecord:
    """Build a capability with this structure."""
    structure = StaticStructure(nodes=tuple(nodes), edges=tuple(edges))
    return record(workflow(), NAME).model_copy(update={"structure": structure})


def called(tool: str, start: float, end: float, *, error: str | None = None) -> TaskResult:
    """Build a call of a tool between two times, in milliseconds."""
    return TaskResult(
        node_id="n1",
        occurrence=0,
        tool=tool,
        args={"secret": "s"},
        success=error is None,
        result="private",
        error=None if error is None else WorkflowError(kind="tool_error", message=error),
        trace_id=uuid4(),
        started_at=start,
        duration_ms=end - start,
    )


def trace(
    of: UUID,
    start: float,
    end: float,
    *calls: TaskResult,
    parent: ExecutionTrace | None = None,
    name: str | None = None,
) -> ExecutionTrace:
    """Build a run between two times, of a workflow of its own unless it has a parent."""
    return ExecutionTrace(
        trace_id=uuid4(),
        parent_trace_id=None if parent is None else parent.trace_id,
        node_id=None if parent is None else "n2",
        name=name,
        capability_id=of,
        workflow_id=uuid4() if parent is None else parent.workflow_id,
        executed_at=start,
        success=True,
        duration_ms=end - start,
        executed_path=("n1",),
        decisions=(),
        task_results=calls,
        priority=0.5,
    )
