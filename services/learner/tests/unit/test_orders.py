"""The orders of the learner's lists."""

from datetime import UTC, datetime
from uuid import UUID

from pml_common.contracts.learner import ExecutionTrace, Feedback, ListTraces, ToolUsage
from pml_learner.domain.lesson import Experience, learn
from pml_learner.domain.orders import MOST_CALLED, MOST_JUDGED, order_of
from pml_learner.domain.temporal_difference import TdRule
from services.learner.tests.support.builders import SCOPE, STARTED_AT, finished_run


def trace(number: int, *, priority: float = 0.0, parent: UUID | None = None) -> ExecutionTrace:
    found = learn(Experience(), finished_run(started_at=STARTED_AT + number), TdRule()).trace
    return found.model_copy(
        update={"trace_id": UUID(int=number), "priority": priority, "parent_trace_id": parent}
    )


def ordered(query: ListTraces, *traces: ExecutionTrace) -> list[int]:
    return [each.trace_id.int for each in sorted(traces, key=order_of(query).place)]


def test_the_newest_trace_or_the_most_surprising_comes_first() -> None:
    found = trace(1), trace(3, priority=0.5), trace(2, priority=1.0)
    assert ordered(ListTraces(scope=SCOPE), *found) == [3, 2, 1]
    assert ordered(ListTraces(scope=SCOPE, order="priority"), *found) == [2, 3, 1]


def test_a_workflows_own_run_precedes_those_inside_it() -> None:
    found = trace(1), trace(2, parent=UUID(int=1))
    assert ordered(ListTraces(scope=SCOPE), *found) == [2, 1]
    assert ordered(ListTraces(scope=SCOPE, workflow_id=UUID(int=9)), *found) == [1, 2]


def test_the_most_called_and_the_most_judged_come_first() -> None:
    used = ToolUsage(
        server_id="fs",
        tool_id="fs:read",
        calls=4,
        succeeded=4,
        mean_duration_ms=1.0,
        last_called_at=datetime.now(UTC),
    )
    assert MOST_CALLED.place(used) == (-4, "fs:read", "fs")
    said = Feedback(capability_id=UUID(int=1), useful=2, not_useful=3)
    assert MOST_JUDGED.place(said) == (-5, UUID(int=1))
