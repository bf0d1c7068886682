"""Messages that a replica has not settled: failures of its own, and scopes that it leaves."""

from pml_common.bus.unsettled import Unsettled
from pml_common.contracts.scope import Scope

SUBJECT = "pml.evt.executor.workflow-parked.v1.acme.webapp.w1"
OTHER = "pml.evt.executor.workflow-parked.v1.acme.webapp.w2"
DURABLE = "gateway-on-workflow-parked"


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_failures_count_for_each_message_until_it_is_settled() -> None:
    unsettled = Unsettled(Time())
    assert [unsettled.fail(DURABLE, "1", SUBJECT) for _ in range(3)] == [1, 2, 3]
    assert unsettled.fail(DURABLE, "2", OTHER) == 1
    assert unsettled.fail(DURABLE, "3", SUBJECT) == 1, "a second park of the same run"
    unsettled.settle(DURABLE, "1", SUBJECT)
    unsettled.settle(DURABLE, "1", SUBJECT)
    assert unsettled.fail(DURABLE, "1", SUBJECT) == 1


def test_the_message_that_fails_the_longest_is_named_while_it_fails() -> None:
    time = Time()
    unsettled = Unsettled(time)
    unsettled.fail(DURABLE, "1", SUBJECT)
    assert unsettled.failing(DURABLE, 100.0) is None
    time.now = 150.0
    unsettled.fail(DURABLE, "1", SUBJECT)
    unsettled.fail(DURABLE, "2", OTHER)
    assert unsettled.failing(DURABLE, 100.0) == (SUBJECT, 150.0)
    assert unsettled.failing("other", 100.0) is None
    time.now = 451.0  # it has not come again: another replica has handled it
    assert unsettled.failing(DURABLE, 100.0) is None


def test_of_too_many_failing_messages_the_longest_known_is_forgotten() -> None:
    unsettled = Unsettled(Time(), most=1)
    unsettled.fail(DURABLE, "1", SUBJECT)
    unsettled.fail(DURABLE, "2", OTHER)
    assert unsettled.fail(DURABLE, "1", SUBJECT) == 1


def test_a_scope_that_is_left_to_others_is_known() -> None:
    unsettled = Unsettled(Time())
    unsettled.leave(DURABLE, SUBJECT)
    assert unsettled.left_scope(DURABLE, OTHER) == Scope(org="acme", project="webapp")
    assert unsettled.left_scope("other", OTHER) is None
    assert unsettled.left_scope(DURABLE, OTHER.replace("acme", "rival")) is None
    assert unsettled.left_scope(DURABLE, "pml.evt.executor.workflow-parked.v1.x") is None
