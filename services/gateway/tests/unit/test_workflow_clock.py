"""Effects of time on a workflow."""

from datetime import timedelta

import pytest

from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import WorkflowFinished
from pml_gateway.domain.workflow.events import Analyzed, Due
from services.gateway.tests.support.builders import (
    AT,
    RULES,
    analyzed,
    finished,
    later,
    workflow,
)
from services.gateway.tests.support.steps import after, approve, asking


def test_what_stands_still_is_asked_for_again_under_the_same_id() -> None:
    new = workflow()
    still, effects = after(new, Due(later(60)))
    assert effects == (new.requested,)
    assert still.due_at == later(120)
    assert after(still, Due(later(119))) == (still, ())
    assert after(still, Due(later(500)))[0].due_at == later(1000)

    running, (command,) = after(new, Analyzed(analyzed(new), AT))
    assert running.due_at is not None
    again, (repeated,) = after(running, Due(running.due_at, repeatable_tools=("fs:read",)))
    assert isinstance(repeated, RunWorkflow)
    assert repeated.message_id == command.message_id
    assert repeated.repeatable_tools == ("fs:read",)
    assert not repeated.begins  # an executor may have it
    assert again.state == "running"


def test_a_command_that_is_held_for_an_executor_is_not_repeated() -> None:
    new = workflow()
    running, _ = after(new, Analyzed(analyzed(new), AT))
    assert running.due_at is not None
    waiting, effects = after(running, Due(running.due_at, is_held=True))
    assert effects == ()
    assert waiting.due_at is not None
    assert waiting.due_at > running.due_at
    again, (repeated,) = after(waiting, Due(waiting.due_at))
    assert isinstance(repeated, RunWorkflow)
    hopeless = AT + timedelta(seconds=again.timeout_s) + RULES.grant_slack
    assert after(waiting, Due(hopeless, is_held=True))[0].state == "failed"


def test_an_approved_run_that_stands_still_is_asked_for_under_its_own_id() -> None:
    new = workflow()
    running, (_, command) = after(new, asking(new), approve(new))
    assert running.due_at is not None
    _, (repeated,) = after(running, Due(running.due_at))
    assert repeated.message_id == command.message_id


def test_what_nobody_will_finish_any_more_ends_and_says_whether_it_ran() -> None:
    new = workflow()
    assert after(new, Due(later(3599)))[0].state == "requested"
    unread, (told,) = after(new, Due(later(3600)))
    assert isinstance(told, WorkflowFinished)
    assert unread.state == "failed"
    assert told.error is not None
    assert (told.error.kind, "nothing of it ran" in told.error.message) == ("internal", True)

    for running, began in (
        (after(new, Analyzed(analyzed(new), AT))[0], AT),
        (after(new, asking(new), approve(new))[0], approve(new).at),
    ):
        hopeless = began + timedelta(seconds=running.timeout_s) + RULES.grant_slack
        still, _ = after(running, Due(hopeless - timedelta(seconds=1)))
        assert still.state == "running"
        lost, (told,) = after(running, Due(hopeless))
        assert isinstance(told, WorkflowFinished)
        assert lost.state == "failed"
        assert told.error is not None
        assert told.error.kind == "outcome_unknown"
        assert after(lost, finished(new)) == (lost, ())


@pytest.mark.parametrize("is_running", [False, True])
def test_the_time_without_the_bus_is_added_up_to_as_long_as_grants_outlive_runs(
    is_running: bool,
) -> None:
    new = workflow()
    waiting = after(new, Analyzed(analyzed(new), AT))[0] if is_running else new
    time = timedelta(seconds=new.timeout_s) if is_running else timedelta()
    hopeless = AT + time + RULES.grant_slack
    minute, moment = timedelta(minutes=1), timedelta(seconds=1)
    for away, more in ((minute, minute), (timedelta(days=1), RULES.grant_slack)):
        at = hopeless + more
        state = waiting.state
        assert after(waiting, Due(at - moment, without_bus=away))[0].state == state
        assert after(waiting, Due(at, without_bus=away))[0].state == "failed"
