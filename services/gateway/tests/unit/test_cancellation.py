"""Cancelled workflows."""

from dataclasses import replace

import pytest

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import CancelRun, RunWorkflow
from pml_common.contracts.gateway import ApprovalDecided, WorkflowFinished
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.responses import execute_response
from pml_gateway.domain.workflow.cancellation import require_open
from pml_gateway.domain.workflow.events import Analyzed, Cancelled, Due
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    AT,
    analyzed,
    finished,
    later,
    made,
    workflow,
)
from services.gateway.tests.support.parked_runs import by_name, parked, parked_event
from services.gateway.tests.support.steps import after, approve, asking

WISH = Cancelled("mira", later(5), "no longer needed")


def running() -> tuple[Workflow, RunWorkflow]:
    new = workflow()
    now, (command,) = after(new, Analyzed(analyzed(new), AT))
    assert isinstance(command, RunWorkflow)
    return now, command


def test_what_was_never_analysed_ends_at_once() -> None:
    failed, (told,) = after(workflow(), WISH)
    assert isinstance(told, WorkflowFinished)
    assert failed.error == told.error
    assert told.error == WorkflowError(
        kind="cancelled",
        message="mira cancelled it: no longer needed. Nothing of it had run.",
    )


def test_what_waits_for_a_person_ends_at_once_and_so_does_the_waiting() -> None:
    new = workflow()
    failed, (told, end) = after(new, asking(new), replace(WISH, reason=None))
    assert isinstance(told, ApprovalDecided)
    assert isinstance(end, WorkflowFinished)
    assert (told.outcome, told.decided_by) == ("denied", "mira")
    assert failed.error is not None
    assert failed.error.message == "mira cancelled it. Nothing of it had run."
    assert after(failed, approve(new)) == (failed, ())


def test_a_parked_run_ends_at_once_and_says_what_it_has_done() -> None:
    new = workflow()
    now, effects = after(new, Analyzed(by_name(new, "allow"), AT))
    command = effects[-1]
    assert isinstance(command, RunWorkflow)
    failed, (told, _) = after(now, parked_event(parked(command, calls=[made()]), later(2)), WISH)
    assert isinstance(told, ApprovalDecided)
    assert failed.error is not None
    assert failed.error.kind == "cancelled"
    assert failed.error.message.endswith("It has called fs:read.")
    assert [task.tool for task in execute_response(failed, None).tasks] == ["fs:read"]


def test_a_run_is_ended_by_the_executor_and_told_of_when_it_has() -> None:
    now, command = running()
    waiting, (told,) = after(now, WISH)
    assert isinstance(told, CancelRun)
    assert (told.run.command_id, told.why) == (
        command.command_id,
        "mira cancelled it: no longer needed",
    )
    assert waiting.state == "running"
    assert after(waiting, WISH) == (waiting, ())
    error = WorkflowError(kind="cancelled", message="mira cancelled it. It has called nothing.")
    failed, _ = after(waiting, finished(now, error=error))
    assert (failed.state, execute_response(failed, None).error) == ("failed", error)


def test_a_run_that_was_faster_than_its_cancellation_ended_as_it_did() -> None:
    now, _ = running()
    good, effects = after(now, WISH, finished(now, result=3))
    assert (good.state, good.error, effects) == ("succeeded", None, ())


def test_a_run_that_parks_while_it_is_cancelled_is_not_asked_about() -> None:
    new = workflow()
    now, effects = after(new, Analyzed(by_name(new, "allow"), AT))
    command = effects[-1]
    assert isinstance(command, RunWorkflow)
    failed, (end,) = after(now, WISH, parked_event(parked(command), later(6)))
    assert isinstance(end, WorkflowFinished)
    assert failed.error is not None
    assert failed.error.kind == "cancelled"


def test_an_executor_that_does_not_end_a_run_is_told_again() -> None:
    now, _ = running()
    waiting, (told,) = after(now, WISH)
    assert waiting.due_at is not None
    again, (repeated,) = after(waiting, Due(waiting.due_at))
    assert isinstance(told, CancelRun)
    assert isinstance(repeated, CancelRun)
    assert (repeated.command_id, repeated.why) == (told.command_id, told.why)
    assert again.due_at is not None
    assert again.due_at > waiting.due_at


def test_what_has_ended_cannot_be_cancelled() -> None:
    now, _ = running()
    require_open(now)
    good, _ = after(now, finished(now))
    assert after(good, WISH) == (good, ())
    with pytest.raises(Conflict, match="succeeded at 2026-11-21T09:30:01"):
        require_open(good)
