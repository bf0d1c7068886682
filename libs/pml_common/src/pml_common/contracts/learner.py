"""Contracts of the learner: traces, values and learned statistics."""

from typing import Annotated, ClassVar, Final, Literal
from uuid import UUID

from pydantic import AliasChoices, AwareDatetime, Field, JsonValue, StringConstraints

from pml_common.contracts.base import Contract, Event, Query
from pml_common.contracts.capability import Learning, Share, Usage
from pml_common.contracts.cursors import PlaceCursor
from pml_common.contracts.error import Fault, WorkflowError
from pml_common.contracts.trace import BranchDecision, TaskResult


class LearningUpdated(Event):
    """The statistics of a capability changed, after runs or calls of it inside runs; `learning` and
    `usage` are complete, not deltas. `workflow_id`, `trace_id` and `priority` are those of the last
    run learned from.

    `revision` counts the runs learned from, so that a reader keeps the newest in any order.
    `intent` is that of the first of these runs that succeeded, as a program of its own, and had
    one.
    """

    entity_field: ClassVar[str] = "capability_id"

    capability_id: UUID
    workflow_id: UUID
    trace_id: UUID
    revision: int = Field(ge=1)
    priority: float = Field(ge=0, le=1)
    usage: Usage
    learning: Learning
    intent: str | None = None


class ObservedEdge(Contract):
    """One tool was called after another had ended, by the same caller."""

    from_tool: str
    to_tool: str
    type: Literal["sequence"] = "sequence"
    count: int = Field(default=1, ge=1)


class ObservedCall(Contract):
    """A capability called another, in the same run."""

    from_capability_id: UUID
    to_capability_id: UUID
    count: int = Field(default=1, ge=1)


class ObservedRelation(Contract):
    """A relation with a capability at one end or both, each named by its id or, a tool, as
    `server:tool`. `contains`: the capability called the tool; `sequence`: one was called after the
    other had ended, by the same caller."""

    from_: str = Field(validation_alias=AliasChoices("from", "from_"), serialization_alias="from")
    to: str
    type: Literal["contains", "sequence"]
    count: int = Field(default=1, ge=1)


COHORTS: Final = 16
"""Groups into which principals fall by a hash; what one group adds to an edge is bounded."""


class EdgesObserved(Event):
    """Relations between tools, calls between capabilities and the other relations of these,
    observed in `runs` runs of a capability by principals of one cohort, the last of them
    `workflow_id`. Each count is the number of runs that showed it."""

    entity_field: ClassVar[str] = "capability_id"

    capability_id: UUID
    workflow_id: UUID
    edges: tuple[ObservedEdge, ...]
    calls: tuple[ObservedCall, ...] = ()
    relations: tuple[ObservedRelation, ...] = ()
    runs: int = Field(default=1, ge=1)
    cohort: int = Field(default=0, ge=0, lt=COHORTS)


TraceOrder = Literal["newest", "priority"]

COUNTED_TRACES: Final = 10_000
"""The number up to which the traces of a list are counted."""


class ListTraces(Query):
    """List traces of one capability, of one workflow, of one intent (its exact text) or of all:
    newest first, where a workflow's own run precedes those inside it, or by priority, the highest
    first."""

    capability_id: UUID | None = None
    workflow_id: UUID | None = None
    intent: Annotated[str, StringConstraints(min_length=1, max_length=10_000)] | None = None
    order: TraceOrder = "newest"
    limit: int = Field(default=20, ge=1, le=200)
    offset: int = Field(default=0, ge=0)
    cursor: PlaceCursor | None = None


class LargeResult(Contract):
    """A result that is too large for its trace, where null stands for it: of the call or run with
    this `trace_id`, `size` bytes of JSON. `pml_get_task_result` returns it, by the workflow and
    `task_id` (none: the workflow's own), until it has `expired`; until when is known to the
    gateway alone, which adds both."""

    trace_id: UUID
    task_id: str | None = None
    size: int = Field(ge=1)
    kept_until: AwareDatetime | None = None
    expired: bool = False


class ExecutionTrace(Contract):
    """The record of one run of one capability; times in milliseconds. `task_results` are its own
    tool calls. The runs of capabilities that it called have its `trace_id` as parent: `name` is
    their name at that time, `node_id` the path of the call. `discovery_id` is the discovery that
    the caller followed.

    `fault` is None for a run that succeeded. `position` counts the capability's traces in the order
    of storage, from 1: what is learned follows from them in this order. None for dry runs, direct
    calls and runs without a result, which teach nothing, and for traces from before there were
    positions.
    `large_results` are those that stand elsewhere."""

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
    discovery_id: UUID | None = None
    fault: Fault | None = None
    position: int | None = Field(default=None, ge=1)
    large_results: tuple[LargeResult, ...] = ()


class FindTrace(Query):
    """Find one trace; errors: `not_found`."""

    trace_id: UUID


class TracePage(Contract):
    """One page of traces, and the total number, of which no more than `COUNTED_TRACES` are counted;
    with `next_cursor` there are more."""

    traces: tuple[ExecutionTrace, ...]
    total: int = Field(ge=0)
    next_cursor: PlaceCursor | None = None


CAPABILITIES: Final = "pml-capabilities"
"""The server of calls of named capabilities, whose tool ids are `cap:<name>`."""


class ListToolUsage(Query):
    """List how often tools and named capabilities were called, the most often called first; those
    of one server, or all."""

    server_id: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    limit: int = Field(default=50, ge=1, le=200)
    offset: int = Field(default=0, ge=0)
    cursor: PlaceCursor | None = None


class ToolUsage(Contract):
    """Calls of one tool by programs, or of one named capability by name. Refused and mocked calls
    are not counted; the mean is over all calls, in milliseconds."""

    server_id: str
    tool_id: str
    calls: int = Field(ge=1)
    succeeded: int = Field(ge=0)
    mean_duration_ms: float = Field(ge=0)
    last_called_at: AwareDatetime


class ToolUsagePage(Contract):
    """One page of tools, their number, and the calls of all of them; with `next_cursor` there are
    more."""

    usage: tuple[ToolUsage, ...]
    total: int = Field(ge=0)
    calls: int = Field(ge=0)
    next_cursor: PlaceCursor | None = None


class GiveFeedback(Query):
    """Store whether a principal found the run of a workflow useful. A principal has one opinion of
    a workflow: the last one counts."""

    principal: str
    workflow_id: UUID
    useful: bool
    comment: Annotated[str, StringConstraints(pattern=r"^[^\x00]{0,2000}$")] = ""


class Feedback(Contract):
    """The opinions of a capability's runs: each principal's of each workflow, once. `value` is the
    learned share of useful ones, with its interval, as in `Usage`: each principal says only so
    much."""

    capability_id: UUID
    useful: int = Field(ge=0)
    not_useful: int = Field(ge=0)
    value: Share | None = None
    low: Share | None = None
    high: Share | None = None


class ListFeedback(Query):
    """List the opinions of capabilities' runs, the most often judged first."""

    limit: int = Field(default=50, ge=1, le=200)
    offset: int = Field(default=0, ge=0)
    cursor: PlaceCursor | None = None


class FeedbackPage(Contract):
    """One page of judged capabilities, and their number; with `next_cursor` there are more."""

    feedback: tuple[Feedback, ...]
    total: int = Field(ge=0)
    next_cursor: PlaceCursor | None = None


class RebuildLearning(Query):
    """Recompute what capabilities learned, from their stored traces: of one capability, or of those
    after the id `after`. Each query does a bounded part; without effect on what is up to date."""

    capability_id: UUID | None = None
    after: UUID | None = None


class RebuildProgress(Contract):
    """The part of a rebuild that one query did: `rebuilt` capabilities are done, of which `changed`
    are other than before; `traces` were read, `missing` ones were found to be lost. `left`
    capabilities are still to do: ask again with `after`."""

    rebuilt: int = Field(ge=0)
    changed: int = Field(ge=0)
    traces: int = Field(ge=0)
    missing: int = Field(ge=0)
    left: int = Field(ge=0)
    after: UUID | None = None
