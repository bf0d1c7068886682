"""Calls that runs made of tools and named capabilities."""

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.learner import CAPABILITIES
from pml_learner.domain.tool_usage import Calls, UsedTool, calls_of
from services.learner.tests.support.builders import (
    SCOPE,
    STARTED_AT,
    finished_run,
    nested_run,
    tool_call,
)


def test_calls_of_tools_are_counted_by_tool() -> None:
    failed = tool_call("fs:read", 5, 7).model_copy(
        update={"success": False, "error": WorkflowError(kind="tool_error", message="no")}
    )
    runs = [finished_run(calls=[tool_call("fs:read", 0, 3), failed]) for _ in range(2)]
    assert calls_of(runs) == {UsedTool(SCOPE, "fs", "fs:read"): Calls(4, 2, 10.0, 5)}


def test_calls_of_named_capabilities_are_those_of_a_server_of_their_own() -> None:
    run = finished_run(duration_ms=20.0).model_copy(update={"called_as": "fs:tidy"})
    inner = nested_run(run.trace_id, "cd" * 32, success=False)
    unnamed = inner.model_copy(update={"name": "unnamed_cdcd"})
    run = run.model_copy(update={"nested": (inner, inner, unnamed)})
    assert calls_of([run]) == {
        UsedTool(SCOPE, CAPABILITIES, "cap:fs:tidy"): Calls(1, 1, 20.0, STARTED_AT),
        UsedTool(SCOPE, CAPABILITIES, "cap:a:ccd"): Calls(2, 0, 8.0, STARTED_AT + 1),
    }


def test_what_reached_no_tool_does_not_count() -> None:
    denied = tool_call("fs:any", 0, 1).model_copy(
        update={"success": False, "error": WorkflowError(kind="denied", message="no")}
    )
    mocked = tool_call("fs:read", 0, 1).model_copy(update={"mocked": True})
    odd = [tool_call("x:" + "y" * 300, 0, 1), tool_call(":y", 0, 1)]
    assert calls_of([finished_run(calls=[denied, mocked, *odd])]) == {}
    dry = finished_run(calls=[tool_call("fs:read", 0, 1)], dry_run=True)
    assert calls_of([dry.model_copy(update={"called_as": "fs:tidy"})]) == {}


def test_a_clock_that_steps_back_gives_no_negative_time() -> None:
    run = finished_run(calls=[tool_call("fs:read", 3, 1)])
    assert calls_of([run]) == {UsedTool(SCOPE, "fs", "fs:read"): Calls(1, 1, 0.0, 3)}
