"""Results that are too large for their traces."""

import pytest
from pydantic import JsonValue

from pml_common.contracts.executor import NestedRun, RunFinished
from pml_common.contracts.learner import FindTrace, LargeResult
from pml_common.storage.pool import Pool
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.domain.large_results import trace_of
from pml_learner.domain.lesson import Experience, learn
from pml_learner.domain.nested_runs import own_runs
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import SCOPE, finished_run, nested_run, tool_call

BIG = "x" * 5000
SIZE = len(BIG) + 2


def run_with(result: JsonValue, inner: JsonValue = None) -> RunFinished:
    """Build a run whose call, and whose capability's call, have such results."""
    first = finished_run()
    nested: NestedRun = nested_run(first.trace_id, "cd" * 32, "n2").model_copy(
        update={"result": inner}
    )
    own = tool_call("fs:read", 0, 1, parent=first.trace_id).model_copy(update={"result": result})
    inside = tool_call("fs:read", 2, 3, "n2/n1", parent=nested.trace_id)
    calls = (own, inside.model_copy(update={"result": inner}))
    return first.model_copy(update={"result": result, "nested": (nested,), "task_results": calls})


def test_small_results_stand_in_the_trace() -> None:
    lesson = learn(Experience(), run_with({"size": 3}), TdRule())
    assert trace_of(lesson, 10) == lesson.trace
    assert trace_of(lesson, 9).large_results[0].size == 10


def test_large_results_are_named_as_their_workflow_is_asked_for_them() -> None:
    run = run_with(BIG, BIG)
    own, inner = (
        trace_of(learn(Experience(), each, TdRule(), call), 4096) for each, call in own_runs(run)
    )
    assert own.result is None
    assert [task.result for task in (*own.task_results, *inner.task_results)] == [None, None]
    assert own.large_results == (
        LargeResult(trace_id=run.trace_id, size=SIZE),
        LargeResult(trace_id=run.task_results[0].trace_id, task_id="n1.0", size=SIZE),
    )
    assert [(each.trace_id, each.task_id) for each in inner.large_results] == [
        (run.nested[0].trace_id, "n2.0"),
        (run.task_results[1].trace_id, "n2/n1.0"),
    ]


@pytest.mark.integration
async def test_a_store_keeps_the_reference(trace_store: TraceStore) -> None:
    run = run_with(BIG, "small")
    await on_runs_finished([run], trace_store, TdRule())
    stored = [
        await trace_store.trace(FindTrace(scope=SCOPE, trace_id=each))
        for each in (run.trace_id, run.nested[0].trace_id)
    ]
    expected = [
        trace_of(learn(Experience(), each, TdRule(), call), 4096) for each, call in own_runs(run)
    ]
    assert stored == expected
    assert [len(trace.large_results) for trace in expected] == [2, 0]


@pytest.mark.integration
async def test_the_limit_is_a_setting(trace_store: TraceStore, learner_pool: Pool) -> None:
    run, store = run_with("small"), PostgresTraceStore(learner_pool, most_bytes=6)
    await on_runs_finished([run], store, TdRule())
    found = await store.trace(FindTrace(scope=SCOPE, trace_id=run.trace_id))
    assert found is not None
    assert len(found.large_results) == 2
