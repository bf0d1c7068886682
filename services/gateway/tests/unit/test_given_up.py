"""The end of a workflow whose message was dead-lettered."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from pml_common.contracts import ids
from pml_common.contracts.gateway import WorkflowFinished
from pml_gateway.domain.workflow.events import Analyzed, Cancelled, Due, GivenUp, JournalSeen
from pml_gateway.domain.workflow.workflow import Approval, Workflow
from pml_gateway.domain.workflow.workflow_state import abandoned_at
from services.gateway.tests.support.builders import AT, RULES, analyzed, later, workflow
from services.gateway.tests.support.layered import running as at_a_layer
from services.gateway.tests.support.layered import with_command
from services.gateway.tests.support.parked_runs import by_name, parked, parked_event
from services.gateway.tests.support.steps import after, approve, asking

CALLS = "It has called fs:read. The outcome of these calls is unknown: fs:write."
SEEN = JournalSeen(CALLS)


def running() -> Workflow:
    new = workflow()
    return after(new, Analyzed(analyzed(new), AT))[0]


def given(
    consumer: str, message_id: object, journal: JournalSeen | None = None, reason: str = "why"
) -> GivenUp:
    return GivenUp(consumer, str(message_id), reason, later(3), journal)


def message_of(before: Workflow, workflow_event: GivenUp) -> tuple[str, str]:
    """Return the kind and message of the error that ends it."""
    ended, (told,) = after(before, workflow_event)
    assert isinstance(told, WorkflowFinished)
    assert (ended.state, ended.due_at, ended.finished_at) == ("failed", None, later(3))
    assert told.error is not None
    assert after(ended, workflow_event) == (ended, ())
    return told.error.kind, told.error.message


def test_a_request_that_the_analyzer_gives_up_ends_and_nothing_of_it_ran() -> None:
    new = workflow()
    workflow_event = given("analyzer-on-execution-requested", new.requested.event_id)
    assert message_of(new, workflow_event) == (
        "internal",
        "the program could not be analysed, and nothing of it ran; "
        "analyzer-on-execution-requested gave it up: why",
    )


@pytest.mark.parametrize("name", ["execution-analyzed", "analysis-rejected"])
def test_an_answer_of_the_analyzer_that_cannot_be_taken_ends_its_workflow(name: str) -> None:
    new = workflow()
    answer = ids.effect_id(new.requested.event_id, name)
    kind, message = message_of(new, given(f"gateway-on-{name}", answer))
    assert (kind, f"gateway-on-{name} gave it up" in message) == ("internal", True)


def test_a_run_that_no_executor_can_make_ends_and_says_what_it_has_called() -> None:
    now = running()
    workflow_event = given("executor-on-run-workflow", now.run_command_id, SEEN)
    assert message_of(now, workflow_event) == (
        "internal",
        f"the run could not be finished; executor-on-run-workflow gave it up: why. {CALLS}",
    )
    assert message_of(now, replace(workflow_event, journal=None))[1] == (
        "the run could not be finished; executor-on-run-workflow gave it up: why"
    )


def test_an_accepted_run_that_no_executor_can_make_ends_unless_an_approval_followed() -> None:
    now = running()
    accepted = ids.effect_id(now.workflow_id, "workflow-accepted")
    workflow_event = given("executor-on-workflow-accepted", accepted, SEEN)
    kind, message = message_of(now, workflow_event)
    assert (kind, "executor-on-workflow-accepted gave it up" in message) == ("internal", True)
    approved = replace(now, approval=Approval(accepted, AT, later(9)))
    assert after(approved, workflow_event) == (approved, ())


def test_a_run_whose_journal_cannot_be_read_says_so_and_what_is_unknown() -> None:
    now, seen = running(), replace(SEEN, fault="append 7: not\n a TraceRecorded")
    assert message_of(now, given("executor-on-run-workflow", now.run_command_id, seen)) == (
        "internal",
        "the run's journal cannot be read as a whole (append 7: not a TraceRecorded): it was "
        f"damaged or tampered with. As far as it can be read: {CALLS} What else was called is "
        "unknown.",
    )


@pytest.mark.parametrize(("succeeded", "how"), [(True, "succeeded"), (False, "failed")])
def test_an_end_that_cannot_be_kept_is_told_as_the_journal_has_it(
    succeeded: bool, how: str
) -> None:
    now, seen = running(), replace(SEEN, succeeded=succeeded)
    end = ids.effect_id(now.workflow_id, "run-finished")
    assert message_of(now, given("gateway-on-run-finished", end, seen)) == (
        "internal",
        f"the run {how} by its journal, and its end could not be stored; "
        f"gateway-on-run-finished gave it up: why. {CALLS}",
    )


def test_a_cancelled_run_that_no_executor_can_end_ends_as_cancelled() -> None:
    now = running()
    cancel = given("executor-on-cancel-run", ids.effect_id(now.workflow_id, "cancel-run"), SEEN)
    assert after(now, cancel) == (now, ())  # nobody has cancelled it
    waiting, _ = after(now, Cancelled("mira", later(1), "enough"))
    expected = "cancelled", "mira cancelled it: enough. But the run could not be finished; {}"
    for workflow_event in (cancel, given("executor-on-run-workflow", now.run_command_id, SEEN)):
        kind, message = message_of(waiting, workflow_event)
        why = f"{workflow_event.consumer} gave it up: why. {CALLS}"
        assert (kind, message) == (expected[0], expected[1].format(why))


def test_a_cancelled_run_that_nobody_ends_in_time_ends_as_cancelled() -> None:
    waiting, _ = after(running(), Cancelled("mira", later(1)))
    ended, (told,) = after(waiting, Due(later(waiting.timeout_s) + RULES.grant_slack))
    assert isinstance(told, WorkflowFinished)
    assert ended.error is not None
    assert ended.error.kind == "cancelled"
    assert ended.error.message.startswith("mira cancelled it. No executor ended the run in time")


def test_a_park_that_cannot_be_taken_ends_its_run() -> None:
    now, command = at_a_layer()
    park = ids.effect_id(command.command_id, "workflow-parked")
    kind, _ = message_of(now, given("gateway-on-workflow-parked", park, SEEN))
    assert kind == "internal"


def test_commands_of_before_an_approval_are_no_longer_waited_for() -> None:
    new = workflow()
    now, command = with_command(*after(new, Analyzed(by_name(new, "allow"), AT)))
    first = now.run_command_id
    waits, _ = after(now, parked_event(parked(command), later(1)))
    stale = given("executor-on-run-workflow", first, SEEN)
    assert after(waits, stale) == (waits, ())
    asked = after(new, asking(new), approve(new))[0]
    assert after(asked, stale) == (asked, ())


def test_what_others_gave_up_and_what_is_not_waited_for_changes_nothing() -> None:
    new, now = workflow(), running()
    cases = [
        (new, "registry-on-execution-analyzed", ids.effect_id(new.requested.event_id, "x")),
        (new, "executor-on-run-workflow", new.run_command_id),
        (new, "analyzer-on-execution-requested", uuid4()),
        (now, "analyzer-on-execution-requested", now.requested.event_id),
        (now, "executor-on-run-workflow", uuid4()),
        (now, "learner-on-run-finished", ids.effect_id(now.workflow_id, "run-finished")),
    ]
    for before, consumer, message_id in cases:
        assert after(before, given(consumer, message_id, SEEN)) == (before, ())


def test_a_long_reason_is_cut() -> None:
    new = workflow()
    workflow_event = given(
        "analyzer-on-execution-requested", new.requested.event_id, reason="x" * 900
    )
    assert message_of(new, workflow_event)[1].endswith("x" * 500 + "…")


def test_the_clock_looks_again_no_later_than_when_hope_ends() -> None:
    """An unfinished workflow ends when its grant does, not up to twice as late."""
    new = workflow()
    for before in (new, running(), after(new, asking(new), approve(new))[0]):
        hopeless = abandoned_at(before, RULES, timedelta(0))
        for seconds in (120, 1800, 3000, 3590):
            still, _ = after(before, Due(later(seconds)))
            assert still.due_at is not None
            assert still.due_at <= hopeless
        assert after(before, Due(hopeless))[0].state == "failed"
