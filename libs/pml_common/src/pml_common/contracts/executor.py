"""What the executor owns: runs and their journals."""

from uuid import UUID

from pydantic import Field, JsonValue

from pml_common.contracts.base import Command, Contract, Event
from pml_common.contracts.capability import CapabilityIdentity, InjectedCapability
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.grant import Grant
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import BranchDecision, TaskResult, TraceEvent


class Checkpoint(Contract):
    """A layer of a DAG, counted from 1, before which the run parks; `node_ids` are its calls."""

    layer: int = Field(ge=2)
    node_ids: tuple[str, ...]


class RunWorkflow(Command):
    """Run this instrumented program under this grant.

    `insertions` are as in `ExecutionAnalyzed`: by them places in errors become the author's.
    `injected` are the capabilities it may call; each must be in the grant, with its hash.
    `repeatable_tools` may be called again when a crash leaves an outcome unknown. `mocks` are the
    tools that a dry run does not call, each with its answers: one after another, the last for good.
    The run parks at calls that the grant does not cover, and at the first call of each of the
    `checkpoints`, once. `timeout_s` does not count the time in which it is parked.
    """

    workflow_id: UUID
    principal: str
    capability: CapabilityIdentity
    intent: str | None = None
    args: JsonObject = Field(default_factory=dict)
    instrumented: str
    insertions: tuple[tuple[int, int], ...] = ()
    injected: tuple[InjectedCapability, ...] = ()
    grant: Grant
    mocks: dict[str, tuple[JsonValue, ...]] = Field(default_factory=dict)
    repeatable_tools: tuple[str, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    timeout_s: float = Field(gt=0)


class CancelRun(Command):
    """End a run wherever it stands; `run` is the command that it goes by, `why` is in words."""

    workflow_id: UUID
    run: RunWorkflow
    why: str


class WantedCall(Contract):
    """A call that a run stands at until a person has agreed to it.

    `args` are its arguments, `args_hash` their hash. `why` says how it differs from what was
    approved before. `definition_hash` is that of the tool as the gateway lists it when it asks: the
    executor does not know it. Line and column are the author's, where known. With `layer` it is
    the first of that layer of a DAG, and the person agrees to the layer.
    """

    node_id: str
    occurrence: int = Field(ge=0)
    tool: str
    args_hash: str
    args: JsonObject
    why: str = ""
    definition_hash: str = ""
    line: int | None = None
    column: int | None = None
    layer: int | None = None


class ParkMark(Contract):
    """A run left its executor to wait for a person (`wanted`, and the calls that wait `beside` it),
    or went on (without); `command_id` is the command under which it did. `ts` is Unix time in
    milliseconds."""

    command_id: UUID
    ts: float
    wanted: WantedCall | None = None
    beside: tuple[WantedCall, ...] = ()


class TraceRecorded(Event):
    """One append to a workflow's journal; entries in the order they happened, then the mark.

    `previous` is the sequence of the append before it, 0 for the first: a journal whose appends do
    not follow one another has lost some.
    """

    workflow_id: UUID
    entries: tuple[TraceEvent, ...]
    mark: ParkMark | None = None
    previous: int | None = Field(default=None, ge=0)


class NestedRun(Contract):
    """One call of a capability by a run, a run of its own: `parent_trace_id` is the trace of its
    caller, `node_id` and `occurrence` the call there. The path and the decisions are in the ids of
    its own structure; its tool calls are the tasks of the whole run that have its trace as parent.
    """

    trace_id: UUID
    parent_trace_id: UUID
    node_id: str
    occurrence: int = Field(ge=0)
    capability: CapabilityIdentity
    name: str
    success: bool
    result: JsonValue = None
    error: WorkflowError | None = None
    executed_path: tuple[str, ...] = ()
    decisions: tuple[BranchDecision, ...] = ()
    started_at: float
    duration_ms: float


class WorkflowParked(Event):
    """A run waits for a person to agree to a call, and holds no process meanwhile.

    `beside` are the other calls that wait at that moment. `grant_digest` names what it ran under by
    `command_id`; `task_results` and `nested` are the calls made until then, as in `RunFinished`.
    `journal_sequence` is that of the append that parked it.
    """

    workflow_id: UUID
    command_id: UUID
    wanted: WantedCall
    beside: tuple[WantedCall, ...] = ()
    grant_digest: str
    task_results: tuple[TaskResult, ...] = ()
    nested: tuple[NestedRun, ...] = ()
    journal_sequence: int | None = None


class RunFinished(Event):
    """A run ended; derived from its journal alone, so that any executor states the same.

    The path and the decisions are the program's own. `task_results` are all tool calls, those of
    nested capabilities included, in the order they started; `nested` are its calls of capabilities,
    callers before those they call. `journal_sequence` is the sequence of the append that closed the
    journal: the end is taken only if it is the journal's last.
    """

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
    dry_run: bool = False
    nested: tuple[NestedRun, ...] = ()
    trace_id: UUID
    started_at: float
    duration_ms: float
    journal_sequence: int | None = None
