"""The orders of the learner's lists."""

from typing import Final
from uuid import UUID

from pydantic import TypeAdapter

from pml_common.contracts.cursors import Keyset, Name, Rank
from pml_common.contracts.learner import ExecutionTrace, Feedback, ListTraces, ToolUsage

_NEWEST = TypeAdapter(tuple[bool, float, UUID])

MOST_CALLED: Final = Keyset[ToolUsage, tuple[int, str, str]](
    TypeAdapter(tuple[Rank, Name, Name]), lambda used: (-used.calls, used.tool_id, used.server_id)
)
MOST_JUDGED: Final = Keyset[Feedback, tuple[int, UUID]](
    TypeAdapter(tuple[Rank, UUID]),
    lambda said: (-said.useful - said.not_useful, said.capability_id),
)


def newest_first(query: ListTraces) -> Keyset[ExecutionTrace, tuple[bool, float, UUID]]:
    """Return the order of traces, in which a workflow's own run precedes those inside it."""
    of_workflow = query.workflow_id is not None

    def place(trace: ExecutionTrace) -> tuple[bool, float, UUID]:
        is_inside = of_workflow and trace.parent_trace_id is not None
        return is_inside, -trace.executed_at, trace.trace_id

    return Keyset(_NEWEST, place)
