"""Learning from one run, and the messages to publish."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts import ids
from pml_common.contracts.error import Fault
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import EdgesObserved, LearningUpdated
from pml_learner.domain.batch import capabilities_of, lessons_of, messages_of, times_of
from pml_learner.domain.lesson import Experience, Lesson, learn
from pml_learner.domain.temporal_difference import TdRule
from services.learner.tests.support.builders import (
    CREATE,
    READ,
    SCOPE,
    finished_run,
    nested_run,
    tool_call,
)


def _lessons(*runs: RunFinished) -> list[Lesson]:
    experience, lessons = Experience(), list[Lesson]()
    for run in runs:
        lessons.append(learn(experience, run, TdRule()))
        experience = lessons[-1].experience
    return lessons


def test_three_runs_over_two_branches_learn_both_paths_and_the_dominant_one() -> None:
    exists, absent = [("d1", "true")], [("d1", "false")]
    *_, last = _lessons(
        finished_run(READ, decisions=exists),
        finished_run(CREATE, decisions=absent),
        finished_run(READ, decisions=exists),
    )
    learning = last.experience.learning
    assert [(stats.path, stats.count) for stats in learning.paths] == [(READ, 2), (CREATE, 1)]
    assert learning.dominant_path == READ
    (decision,) = learning.decision_stats
    assert {outcome: stats.count for outcome, stats in decision.outcomes.items()} == {
        "true": 2,
        "false": 1,
    }
    assert last.experience.usage.count == last.experience.usage.success_count == 3
    assert last.experience.revision == 3


def test_priority_is_computed_from_the_statistics_before_the_run() -> None:
    first, second, third = _lessons(finished_run(), finished_run(), finished_run(success=False))
    assert first.priority == 1.0
    assert second.priority == 0.0
    assert third.priority == 1.0


def test_messages_have_whole_values_and_ids_derived_from_the_run() -> None:
    run = finished_run(calls=[tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)])
    (lesson,) = _lessons(run)
    updated, observed = messages_of({run.event_id: [lesson]})[run.event_id]
    assert isinstance(updated, LearningUpdated)
    assert updated.event_id == ids.effect_id(run.event_id, "learning-updated")
    assert (updated.revision, updated.trace_id) == (1, run.trace_id)
    assert (updated.usage, updated.learning) == (
        lesson.experience.usage,
        lesson.experience.learning,
    )
    assert isinstance(observed, EdgesObserved)
    assert observed.event_id == ids.effect_id(run.event_id, "edges-observed")
    assert [(edge.from_tool, edge.to_tool) for edge in observed.edges] == [("fs:stat", "fs:read")]


def test_the_first_program_that_succeeded_says_what_its_capability_is_for() -> None:
    def said(*runs: RunFinished) -> str | None:
        before = {
            (SCOPE, known.capability_id): Experience() for known in capabilities_of(runs).values()
        }
        messages = messages_of(lessons_of(before, runs, TdRule()))
        (updated, *_) = messages[runs[-1].event_id]
        assert isinstance(updated, LearningUpdated)
        return updated.intent

    failed = finished_run(success=False).model_copy(update={"intent": "zzz nonsense"})
    silent = finished_run().model_copy(update={"intent": None})
    counts = finished_run().model_copy(update={"intent": "count lines"})
    greets = finished_run().model_copy(update={"intent": "greet"})
    by_name = finished_run().model_copy(update={"intent": "my report", "called_as": "text:count"})
    assert said(failed, silent, by_name, counts, greets) == "count lines"
    assert said(failed, silent, by_name) is None


def test_a_run_without_calls_shows_no_edges() -> None:
    run = finished_run()
    messages = messages_of({run.event_id: _lessons(run)})
    assert [type(message) for message in messages[run.event_id]] == [LearningUpdated]


def test_the_trace_records_the_run_and_its_priority() -> None:
    run = finished_run(
        success=False, decisions=[("d1", "true")], calls=[tool_call("fs:stat", 0, 1)]
    )
    (lesson,) = _lessons(run)
    trace = lesson.trace
    assert (trace.executed_path, trace.decisions, trace.task_results, trace.error) == (
        run.executed_path,
        run.decisions,
        run.task_results,
        run.error,
    )
    assert (trace.executed_at, trace.priority) == (run.started_at, 1.0)


def test_a_negative_duration_counts_as_zero() -> None:
    (lesson,) = _lessons(finished_run(duration_ms=-5.0))
    assert lesson.experience.usage.mean_duration_ms == 0.0


@pytest.mark.parametrize("fault", ["caller", "environment"])
def test_a_failure_by_the_fault_of_others_is_counted_and_teaches_nothing(fault: Fault) -> None:
    calls = [tool_call("fs:stat", 0, 1)]
    before = _lessons(finished_run(), finished_run(duration_ms=30.0))[-1].experience
    run = finished_run(CREATE, success=False, decisions=[("d1", "true")], calls=calls)
    lesson = learn(before, run, TdRule(), fault=fault)
    usage = lesson.experience.usage
    assert (usage.count, usage.success_count, usage.success_streak) == (3, 2, 2)
    assert (usage.caller_faults, usage.environment_faults) == (
        int(fault == "caller"),
        int(fault == "environment"),
    )
    assert (usage.judged, usage.success_rate, usage.value) == (2, 1.0, 1.0)
    assert usage.mean_duration_ms == before.usage.mean_duration_ms
    assert lesson.experience.learning == before.learning
    assert (lesson.priority, lesson.trace.fault, lesson.trace.position) == (0.0, fault, 3)


def test_experience_of_other_rules_is_not_learned_from_but_positions_go_on() -> None:
    before = _lessons(finished_run())[-1].experience
    run = finished_run()
    lesson = learn(before, run, TdRule(version=2))
    assert (lesson.position, lesson.is_taught) == (2, False)
    assert lesson.experience.state == before.state
    assert not lesson.experience.is_current(TdRule())
    assert messages_of({run.event_id: [lesson]}) == {run.event_id: []}


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e6)), min_size=1, max_size=30))
def test_usage_is_the_plain_count_and_mean_of_all_runs(runs: list[tuple[bool, float]]) -> None:
    ends = "".join("1" if ok else "0" for ok, _ in runs)
    *_, last = _lessons(*(finished_run(success=ok, duration_ms=ms) for ok, ms in runs))
    usage = last.experience.usage
    assert (usage.count, usage.success_count) == (len(runs), sum(ok for ok, _ in runs))
    assert usage.success_streak == len(ends) - len(ends.rstrip("1"))
    assert usage.mean_duration_ms == pytest.approx(sum(ms for _, ms in runs) / len(runs))


def test_a_batch_teaches_in_its_order_each_capability_its_own_part() -> None:
    first, second = finished_run(started_at=1.0), finished_run(success=False, started_at=2.0)
    inner = nested_run(second.trace_id, "cd" * 32, success=False, started_at=3.0)
    second = second.model_copy(update={"nested": (inner,)})
    capabilities = capabilities_of([first, second])
    assert list(capabilities.values()) == [first.capability, inner.capability]
    assert times_of([first, second]) == [1.0, 2.0, 3.0]
    lessons = lessons_of(dict.fromkeys(capabilities, Experience()), [first, second], TdRule())
    told = {
        cause: [(each.run.trace_id, each.position, each.fault) for each in of_run]
        for cause, of_run in lessons.items()
    }
    assert told == {
        first.event_id: [(first.trace_id, 1, None)],
        second.event_id: [
            (second.trace_id, 2, "capability"),
            (inner.trace_id, 1, "capability"),
        ],
    }


def test_a_run_without_a_result_teaches_nothing_but_what_it_called_does() -> None:
    workflow = finished_run()
    call = nested_run(workflow.trace_id, "cd34" * 16)
    void = finished_run(nested=[call], calls=[tool_call("fs:write", 0, 1)])
    void = void.model_copy(update={"void": True})
    before = {
        (SCOPE, known.capability_id): Experience() for known in capabilities_of([void]).values()
    }
    own, inner = lessons_of(before, [void], TdRule())[void.event_id]
    assert (own.position, own.is_taught, own.experience) == (None, False, Experience())
    assert (own.trace.success, own.trace.position) == (True, None)
    assert inner.experience.usage.success_count == 1
    (told,) = messages_of({void.event_id: [own, inner]})[void.event_id]
    assert isinstance(told, LearningUpdated)
    assert told.capability_id == call.capability.capability_id


def test_a_success_after_a_run_without_a_result_is_learned_as_the_first() -> None:
    void = finished_run().model_copy(update={"void": True})
    first, second = _lessons(void, finished_run())
    assert messages_of({void.event_id: [first]}) == {void.event_id: []}
    assert (second.experience.usage.count, second.position) == (1, 1)
