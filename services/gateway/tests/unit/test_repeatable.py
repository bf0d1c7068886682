"""Repeatable calls, and the outcomes of repeated ones."""

import pytest

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import ToolAnnotations, ToolDefinition
from pml_gateway.domain.tool_calls.repeatable import (
    NotSent,
    after_unknown,
    outcome_of_attempt,
    read_only_among,
    repeatable,
    repeatable_among,
)
from services.gateway.tests.support.builders import AT, READ, TOOLS, WRITE, analyzed, workflow
from services.gateway.tests.support.calling import call


def test_only_what_says_so_itself_may_be_called_again() -> None:
    idempotent = ToolDefinition(server="a", name="b", annotations=ToolAnnotations(idempotent=True))
    assert repeatable(READ)
    assert repeatable(idempotent)
    assert not repeatable(WRITE)
    assert not repeatable(None)


def test_of_a_program_the_repeatable_tools_are_told() -> None:
    analysis = analyzed(workflow(), tools=(READ, WRITE))
    assert repeatable_among(analysis, TOOLS.get) == ("fs:read",)
    assert repeatable_among(None, TOOLS.get) == ()


def test_of_a_program_the_tools_that_only_read_are_told() -> None:
    sets = WRITE.model_copy(update={"annotations": ToolAnnotations(idempotent=True)})
    analysis = analyzed(workflow(), tools=(READ, WRITE))
    tools = {READ.tool_id: READ, WRITE.tool_id: sets}
    assert repeatable_among(analysis, tools.get) == ("fs:read", "fs:write")
    assert read_only_among(analysis, tools.get) == ("fs:read",)


UNKNOWN = ToolOutcome(status="unknown", message="it closed the connection")
AWAY = NotSent(status="tool_error", message="not connected. Nothing was called")


@pytest.mark.parametrize("second", [AWAY, ToolOutcome(status="timeout", message="too late")])
def test_a_first_outcome_that_is_unknown_stands_where_the_second_tells_nothing(
    second: ToolOutcome,
) -> None:
    found = after_unknown(UNKNOWN, second)
    assert found.status == "unknown"
    assert "it closed the connection" in str(found.message)
    assert "othing was called" not in str(found.message)


def test_a_second_call_that_was_answered_counts() -> None:
    failed = ToolOutcome(status="tool_error", message="disk full")
    assert after_unknown(UNKNOWN, failed) == failed


@pytest.mark.parametrize("outcome", [AWAY, ToolOutcome(status="ok", result=1)])
def test_what_is_sent_for_the_first_time_and_what_was_sent_is_told_as_it_is(
    outcome: ToolOutcome,
) -> None:
    first = call(workflow(), WRITE)
    assert outcome_of_attempt(first, outcome, WRITE) == outcome
    again = first.model_copy(update={"attempt": "again"})
    found = outcome_of_attempt(again, outcome, WRITE)
    assert (found.status == "unknown") is isinstance(outcome, NotSent)
    assert "othing was called" not in str(found.message)


def test_what_was_asked_for_before_may_have_been_sent_where_that_is_not_noted() -> None:
    idempotent = ToolDefinition(server="a", name="b", annotations=ToolAnnotations(idempotent=True))
    asked = call(workflow()).model_copy(update={"asked_first_at": None})
    assert outcome_of_attempt(asked, AWAY, idempotent).status == "unknown"
    assert (
        outcome_of_attempt(asked.model_copy(update={"asked_first_at": AT}), AWAY, idempotent)
        == AWAY
    )
    assert outcome_of_attempt(asked, AWAY, READ) == AWAY, "it only reads"
    assert outcome_of_attempt(asked, AWAY, WRITE) == AWAY, "that it begins is noted"
