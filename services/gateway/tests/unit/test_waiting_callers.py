"""Callers that wait for workflows."""

from uuid import UUID

from pml_gateway.application.waiting_callers import WaitingCallers
from pml_gateway.ports import CallerSide, ServerInputs
from services.gateway.tests.support.builders import SCOPE

ONE, OTHER = UUID(int=1), UUID(int=2)


def test_the_caller_that_has_waited_longest_is_found_and_no_answer_of_a_program_asks() -> None:
    callers = WaitingCallers()
    first = CallerSide(relay=lambda _: None, inputs=ServerInputs())
    second = CallerSide(answer_by=5.0)
    with callers.waiting(SCOPE, ONE, first):
        with callers.waiting(SCOPE, ONE, second):
            found = callers.of(SCOPE, ONE)
            assert found is not None
            assert (found.relay, found.inputs) == (first.relay, None)
        assert callers.of(SCOPE, OTHER) is None
    with callers.waiting(SCOPE, ONE, second):
        assert callers.of(SCOPE, ONE) == second
    assert callers.of(SCOPE, ONE) is None
