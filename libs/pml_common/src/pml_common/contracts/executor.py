"""What the executor owns: runs and their journals."""

from uuid import UUID

from pydantic import Field, JsonValue

from pml_common.contracts.base import Command, Event
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.grant import Grant
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import BranchDecision, TaskResult, TraceEvent


class RunWorkflow(Command):
    """Run this instrumented program under this grant.

    `insertions` are as in `ExecutionAnalyzed`: by them places in errors become the author's.
    `repeatable_tools` may be called again when a crash leaves an outcome unknown.
    """

    workflow_id: UUID
    principal: str
    capability: CapabilityIdentity
    intent: str | None = None
    instrumented: str
    insertions: tuple[tuple[int, int], ...] = ()
    args: JsonObject = Field(default_factory=dict)
    grant: Grant
    repeatable_tools: tuple[str, ...] = ()
    timeout_s: float = Field(gt=0)


class TraceRecorded(Event):
    """One append to a workflow's journal; entries in the order they happened."""

    workflow_id: UUID
    entries: tuple[TraceEvent, ...]


class RunFinished(Event):
    """A run ended; derived from its journal alone, so that any executor states the same."""

    workflow_id: UUID
    principal: str
    capability: CapabilityIdentity
    intent: str | None = None
    success: bool
    result: JsonValue = None
    error: WorkflowError | None = None
    executed_path: tuple[str, ...] = ()
    decisions: tuple[BranchDecision, ...] = ()
    task_results: tuple[TaskResult, ...] = ()
    trace_id: UUID
    started_at: float
    duration_ms: float
