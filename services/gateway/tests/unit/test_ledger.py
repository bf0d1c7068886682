"""Decisions on calls that may have been made before."""

from uuid import uuid4

from pml_common.contracts.gateway import ToolOutcome
from pml_gateway.domain.tool_calls.ledger import (
    LOST,
    MISUSED,
    Answer,
    CallAgain,
    Entry,
    Wait,
    fingerprint,
    is_certainly_new,
    is_discarded,
    judge,
)
from services.gateway.tests.support.builders import AT, WRITE, later, workflow
from services.gateway.tests.support.calling import call

OURS = workflow()
CALL = call(OURS)
BEGUN = Entry(fingerprint(CALL), uuid4(), later(12))


def test_a_call_whose_outcome_is_known_gets_that() -> None:
    outcome = ToolOutcome(status="ok", result=1)
    known = Entry(BEGUN.fingerprint, BEGUN.owner, BEGUN.deadline, outcome)
    for repeatable in (True, False):
        verdict = judge(known, CALL, repeatable=repeatable, owner_lives=False, now=later(99))
        assert verdict == Answer(outcome)


def test_a_call_that_somebody_alive_is_making_is_waited_for() -> None:
    for repeatable in (True, False):
        assert judge(BEGUN, CALL, repeatable=repeatable, owner_lives=True, now=AT) == Wait()


def test_a_call_whose_maker_is_gone_is_made_again_only_if_it_may_be() -> None:
    again = judge(BEGUN, CALL, repeatable=True, owner_lives=False, now=AT)
    assert again == CallAgain(BEGUN.owner)
    assert judge(BEGUN, CALL, repeatable=False, owner_lives=False, now=AT) == Answer(LOST)


def test_a_call_past_its_time_is_lost_whoever_made_it() -> None:
    verdict = judge(BEGUN, CALL, repeatable=False, owner_lives=True, now=later(12))
    assert verdict == Answer(LOST)


def test_a_key_that_stands_for_another_call_is_refused() -> None:
    for other in (call(OURS, args={"path": "/other"}), call(OURS, WRITE)):
        verdict = judge(BEGUN, other, repeatable=True, owner_lives=False, now=AT)
        assert verdict == Answer(MISUSED)


def test_only_what_reads_and_is_another_call_is_of_a_discarded_execution() -> None:
    other = call(OURS, args={"path": "/other"})
    assert is_discarded(BEGUN, other, only_read=True)
    assert not is_discarded(BEGUN, other, only_read=False)
    assert not is_discarded(BEGUN, CALL, only_read=True)


def test_a_call_is_surely_new_for_a_moment_after_it_was_asked_for_the_first_time() -> None:
    asked = CALL.model_copy(update={"asked_first_at": AT})
    assert is_certainly_new(asked, later(1.9))
    assert not is_certainly_new(asked, later(2))
    assert not is_certainly_new(asked, later(-2))
    assert not is_certainly_new(CALL, AT)
