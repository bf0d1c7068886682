"""Runs of one capability with every kind of end, and what they teach."""

from collections.abc import Iterable, Sequence

from pml_common.contracts.error import Fault, WorkflowError
from pml_common.contracts.executor import RunFinished
from pml_learner.domain.fault import faults_of
from pml_learner.domain.lesson import Experience, Lesson, learn
from pml_learner.domain.temporal_difference import TdRule
from services.learner.tests.support.builders import (
    CREATE,
    READ,
    STARTED_AT,
    finished_run,
    tool_call,
)

HOUR_MS = 3_600_000.0


def run_that_ended(
    number: int, *, success: bool, fault: Fault | None = None, who: int = 0
) -> RunFinished:
    """Build a run of the one capability; `number` decides its path, times and calls."""
    error = WorkflowError(kind="user_error", message="no", fault=fault)
    run = finished_run(
        READ if number % 3 else CREATE,
        success=success,
        duration_ms=float(number),
        started_at=STARTED_AT + number % 7 * HOUR_MS / 3 + number / 8,
        decisions=[("d1", str(number % 3 > 0))] * (1 + number % 2),
        calls=[tool_call("fs:read", 0, number / 4)],
    )
    return run.model_copy(update={"principal": f"agent-{who}", "error": None if success else error})


def runs_of_every_kind(count: int) -> list[RunFinished]:
    """Build runs of 11 principals that succeed, or fail by the fault of each."""
    faults: tuple[Fault | None, ...] = (None, "caller", None, "environment")
    return [
        run_that_ended(
            number, success=number % 4 > 0, fault=faults[number // 4 % 4], who=number % 11
        )
        for number in range(count)
    ]


def lessons_in_turn(runs: Iterable[RunFinished], rule: TdRule) -> Sequence[Lesson]:
    """Return what runs of one capability teach, one after the other."""
    known, lessons = Experience(), list[Lesson]()
    for run in runs:
        lessons.append(learn(known, run, rule, fault=faults_of(run).get(run.trace_id)))
        known = lessons[-1].experience
    return lessons
