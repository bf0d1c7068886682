"""Entries of a run's journal.

`ts` is Unix time and `duration_ms` a duration, both in milliseconds.
"""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, JsonValue

from pml_common.contracts.base import Contract
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.tool import JsonObject


class TraceEventBase(Contract):
    """Common fields of entries. `occurrence` counts the times a node was reached in this run, from
    0.

    `node_id` is a path through the calls of capabilities: `n2/n1` is the node `n1` of the
    capability that the program calls at `n2`. Tool calls and calls of capabilities have a trace of
    their own, whose parent is that of the calling program or capability; all other entries have the
    trace of the program or capability that they happen in.
    """

    trace_id: UUID
    parent_trace_id: UUID | None = None
    node_id: str | None = None
    occurrence: int = Field(default=0, ge=0)
    ts: float


class ToolStart(TraceEventBase):
    """A tool call starts; stored before the call unless the tool only reads. A replay compares
    `tool` and `args_hash`."""

    type: Literal["tool_start"] = "tool_start"
    tool: str
    args: JsonObject
    args_hash: str


class ToolEnd(TraceEventBase):
    """A tool call ended; the code gets outcomes in the order of these entries. `mocked`: nothing
    was called, in a dry run."""

    type: Literal["tool_end"] = "tool_end"
    tool: str
    success: bool
    duration_ms: float
    result: JsonValue = None
    error: WorkflowError | None = None
    mocked: bool = False


class CapabilityStart(TraceEventBase):
    """A capability begins; the outermost one, which has no parent, opens the journal and fixes the
    run's clock."""

    type: Literal["capability_start"] = "capability_start"
    capability_id: UUID
    name: str | None = None
    args: JsonObject


class CapabilityEnd(TraceEventBase):
    """A capability ends; the outermost one closes the journal. `notices` say what its result lost
    as JSON; `void` is as in `RunFinished`."""

    type: Literal["capability_end"] = "capability_end"
    capability_id: UUID
    success: bool
    duration_ms: float
    result: JsonValue = None
    error: WorkflowError | None = None
    notices: tuple[str, ...] = ()
    void: bool = False


class DecisionTaken(TraceEventBase):
    """A decision had an outcome; an entry with `counted` other than 0 stands for that many.

    A run's first outcomes have one entry each (1,000 per node, 5,000 in all). After that a hot loop
    gets an entry at each doubling, and one when the program ends.
    """

    type: Literal["decision"] = "decision"
    outcome: str
    counted: int = Field(default=0, ge=0)


class LoopPassed(TraceEventBase):
    """A round of a loop began; `iterations` counts the rounds begun at this node in this run, from
    1. `counted` is as in `DecisionTaken`."""

    type: Literal["loop"] = "loop"
    iterations: int = Field(ge=0)
    counted: int = Field(default=0, ge=0)


LogLevel = Literal["debug", "info", "warn", "error"]


class LogWritten(TraceEventBase):
    """The program wrote to its console."""

    type: Literal["log"] = "log"
    level: LogLevel
    message: str


class LogLine(Contract):
    """A line that a program wrote to its console."""

    level: LogLevel
    message: str


TraceEvent = Annotated[
    ToolStart | ToolEnd | CapabilityStart | CapabilityEnd | DecisionTaken | LoopPassed | LogWritten,
    Field(discriminator="type"),
]


class TaskResult(Contract):
    """One tool call of a run: its start and end in one."""

    node_id: str
    occurrence: int = Field(ge=0)
    tool: str
    args: JsonObject
    success: bool
    result: JsonValue = None
    error: WorkflowError | None = None
    trace_id: UUID
    parent_trace_id: UUID | None = None
    started_at: float
    duration_ms: float
    mocked: bool = False


class BranchDecision(Contract):
    """One decision of a run that had the same outcome `times` times in a row."""

    node_id: str
    outcome: str
    times: int = Field(default=1, ge=1)
