"""The orders of the learner's lists."""

from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field, TypeAdapter

from pml_common.contracts.cursors import Keyset, Name, Rank
from pml_common.contracts.learner import ExecutionTrace, Feedback, ListTraces, ToolUsage

Time = Annotated[float, Field(ge=-2e14, le=2e14)]
"""Milliseconds, as far as Postgres knows times."""

_NEWEST = TypeAdapter(tuple[bool, Time, UUID])

HIGHEST_FIRST: Final = Keyset[ExecutionTrace, tuple[float, float, UUID]](
    TypeAdapter(tuple[float, Time, UUID]),
    lambda trace: (-trace.priority, -trace.executed_at, trace.trace_id),
)
MOST_CALLED: Final = Keyset[ToolUsage, tuple[int, str, str]](
    TypeAdapter(tuple[Rank, Name, Name]), lambda used: (-used.calls, used.tool_id, used.server_id)
)
MOST_JUDGED: Final = Keyset[Feedback, tuple[int, UUID]](
    TypeAdapter(tuple[Rank, UUID]),
    lambda said: (-said.useful - said.not_useful, said.capability_id),
)


def order_of(query: ListTraces) -> Keyset[ExecutionTrace, Any]:
    """Return the order in which traces are asked for."""
    return HIGHEST_FIRST if query.order == "priority" else newest_first(query)


def newest_first(query: ListTraces) -> Keyset[ExecutionTrace, tuple[bool, float, UUID]]:
    """Return the order of traces, in which a workflow's own run precedes those inside it."""
    of_workflow = query.workflow_id is not None

    def place(trace: ExecutionTrace) -> tuple[bool, float, UUID]:
        is_inside = of_workflow and trace.parent_trace_id is not None
        return is_inside, -trace.executed_at, trace.trace_id

    return Keyset(_NEWEST, place)
