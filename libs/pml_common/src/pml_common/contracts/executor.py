"""Contracts of the executor: runs and their journals."""

from typing import Self
from uuid import UUID

from pydantic import Field, JsonValue

from pml_common.contracts.base import Command, Contract, Event
from pml_common.contracts.capability import CapabilityIdentity, InjectedCapability
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.grant import Grant
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import BranchDecision, LogLine, TaskResult, TraceEvent


class Checkpoint(Contract):
    """A layer of a DAG, counted from 1, before which the run parks; `node_ids` are its calls."""

    layer: int = Field(ge=2)
    node_ids: tuple[str, ...]


class RunWorkflow(Command):
    """Run an instrumented program under a grant.

    `insertions` are as in `ExecutionAnalyzed`: they map positions in errors to the author's source.
    `injected` are the capabilities it may call; each must be in the grant, with its hash.
    `repeatable_tools` may be called again when a crash leaves an outcome unknown; of these,
    `read_only_tools` may be called before the call is in the journal. `mocks` are the tools that a
    dry run does not call, each with its successive results, the last one repeated. The run parks at
    calls that the grant does not cover, and once at the first call of each checkpoint. `timeout_s`
    excludes the time in which it is parked. `certain` is the schema of the arguments that the
    program needs, {} if none: where they do not fit, a failure is its caller's fault. `called_as`
    and `discovery_id` are as in `ExecutionRequested`. `begins`: no earlier command of this run
    exists, so at the first delivery of this one there is no journal. `parked_under`: the command
    under which the run was parked, so that its journal has that park.
    """

    workflow_id: UUID
    principal: str
    capability: CapabilityIdentity
    intent: str | None = None
    called_as: str | None = None
    discovery_id: UUID | None = None
    args: JsonObject = Field(default_factory=dict)
    certain: JsonObject = Field(default_factory=dict)
    instrumented: str
    insertions: tuple[tuple[int, int], ...] = ()
    injected: tuple[InjectedCapability, ...] = ()
    grant: Grant
    mocks: dict[str, tuple[JsonValue, ...]] = Field(default_factory=dict)
    repeatable_tools: tuple[str, ...] = ()
    read_only_tools: tuple[str, ...] = ()
    begins: bool = False
    parked_under: UUID | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    timeout_s: float = Field(gt=0)


class CancelRun(Command):
    """Cancel a run in any state; `run` is the command that it runs under, `why` is a sentence."""

    workflow_id: UUID
    run: RunWorkflow
    why: str


class WantedCall(Contract):
    """A call that a parked run waits for a person to approve.

    `args` are its arguments, `args_hash` their hash. `why` says how it differs from what was
    approved before. `definition_hash` is the tool's current one, filled in by the gateway: the
    executor does not know it. Line and column are in the author's source, if known. With `layer` it
    is the first call of that layer of a DAG, and the person approves the layer.
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
    """A run parked to wait for a person (`wanted`, and the calls waiting `beside` it), or resumed
    (without); `command_id` is the command under which it did. `ts` is Unix time in
    milliseconds."""

    command_id: UUID
    ts: float
    wanted: WantedCall | None = None
    beside: tuple[WantedCall, ...] = ()


class JournalAppend(Event):
    """One append to a run's journal: entries in the order they happened.

    `previous` is the sequence of the preceding append, 0 for the first. The server stores it only
    if that is the last event of the executor about the workflow, so a journal has one writer; a gap
    between appends shows that some were lost.
    """

    workflow_id: UUID
    entries: tuple[TraceEvent, ...]
    previous: int | None = Field(default=None, ge=0)

    def without_entries(self) -> Self:
        """Return it as it is kept outside of the journal."""
        return self.model_copy(update={"entries": ()})


class TraceRecorded(JournalAppend):
    """An append after which the run goes on; with a `mark`, after it was parked."""

    mark: ParkMark | None = None


class NestedRun(Contract):
    """One call of a capability by a run, recorded as a run of its own: `parent_trace_id` is the
    trace of its caller, `node_id` and `occurrence` the call there. The path and the decisions use
    node ids of its own structure; its tool calls are the tasks whose parent is its trace.
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


class WorkflowParked(JournalAppend):
    """The append that parks a run: it waits for a person to approve a call, without a process
    meanwhile.

    `beside` are the other calls waiting at that moment, `ts` is Unix time in milliseconds.
    `grant_digest` identifies the grant it ran under by `command_id`; `task_results` and `nested`
    are the calls made until then, `logs` the last lines written, as in `RunFinished`.
    """

    entries: tuple[TraceEvent, ...] = ()
    command_id: UUID
    ts: float
    wanted: WantedCall
    beside: tuple[WantedCall, ...] = ()
    grant_digest: str
    task_results: tuple[TaskResult, ...] = ()
    nested: tuple[NestedRun, ...] = ()
    logs: tuple[LogLine, ...] = ()
    logs_omitted: int = Field(default=0, ge=0)


class RunFinished(JournalAppend):
    """The append that ends a run: its last entry is the end of the program, the rest is derived
    from the whole journal.

    The path and the decisions are the program's own. `task_results` are all tool calls, those of
    nested capabilities included, in the order they started; `nested` are its calls of capabilities,
    callers before callees. Its `entries` have no results: they are in these. `logs` are the last
    lines that the program wrote to its console, 256 KiB of JSON at most, after `logs_omitted`
    others. `notices` say what results lost as JSON. `void`: it has succeeded with null, because
    the program returned a part that the result of a tool does not have; the first notice says so,
    and that its calls are not to be repeated. Nothing is learned of it, and it gives no name.
    `called_as` and `discovery_id` are as in `RunWorkflow`.
    """

    entries: tuple[TraceEvent, ...] = ()
    principal: str
    capability: CapabilityIdentity
    intent: str | None = None
    called_as: str | None = None
    discovery_id: UUID | None = None
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
    logs: tuple[LogLine, ...] = ()
    logs_omitted: int = Field(default=0, ge=0)
    notices: tuple[str, ...] = ()
    void: bool = False
