"""What the learner owns: traces, values and what they taught."""

from typing import ClassVar, Literal
from uuid import UUID

from pydantic import Field, JsonValue

from pml_common.contracts.base import Contract, Event, Query
from pml_common.contracts.capability import Learning, Usage
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.trace import BranchDecision, TaskResult


class LearningUpdated(Event):
    """More was learned, from a run or from the calls of a capability inside one; `learning` and
    `usage` are whole, not deltas.

    `revision` counts the runs learned from, so that a reader keeps the newest whatever the order.
    """

    entity_field: ClassVar[str] = "capability_id"

    capability_id: UUID
    workflow_id: UUID
    trace_id: UUID
    revision: int = Field(ge=1)
    priority: float = Field(ge=0, le=1)
    usage: Usage
    learning: Learning


class ObservedEdge(Contract):
    """One tool was called after another had ended, in the same run."""

    from_tool: str
    to_tool: str
    type: Literal["sequence"] = "sequence"
    count: int = Field(default=1, ge=1)


class EdgesObserved(Event):
    """Relations between tools that one run showed."""

    entity_field: ClassVar[str] = "capability_id"

    capability_id: UUID
    workflow_id: UUID
    edges: tuple[ObservedEdge, ...]


class ListTraces(Query):
    """Traces, newest first, of one capability or of one workflow; of a workflow, its own run comes
    before those inside it."""

    capability_id: UUID | None = None
    workflow_id: UUID | None = None
    limit: int = Field(default=20, ge=1, le=200)
    offset: int = Field(default=0, ge=0)


class ExecutionTrace(Contract):
    """The record of one run of one capability; times in milliseconds. `task_results` are its own
    tool calls; the runs of capabilities that it called have its `trace_id` as parent: `name` is
    what they were called then, `node_id` leads to the call, through those round it."""

    trace_id: UUID
    parent_trace_id: UUID | None = None
    node_id: str | None = None
    name: str | None = None
    capability_id: UUID
    workflow_id: UUID
    intent: str | None = None
    executed_at: float
    success: bool
    duration_ms: float
    result: JsonValue = None
    error: WorkflowError | None = None
    executed_path: tuple[str, ...]
    decisions: tuple[BranchDecision, ...]
    task_results: tuple[TaskResult, ...]
    priority: float = Field(ge=0, le=1)
    dry_run: bool = False


class TracePage(Contract):
    """One page of traces and how many there are in all."""

    traces: tuple[ExecutionTrace, ...]
    total: int = Field(ge=0)
