"""Results that are too large for their traces, and the references in their place."""

from pml_common.contracts.learner import LargeResult
from pml_learner.domain.large_results import trace_of
from pml_learner.domain.lesson import Experience, learn
from pml_learner.domain.nested_runs import own_runs
from pml_learner.domain.temporal_difference import TdRule
from services.learner.tests.support.large_results import BIG, run_with

SIZE = len(BIG) + 2


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
