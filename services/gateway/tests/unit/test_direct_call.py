"""The workflow of a direct call, its end, and its entry in the ledger."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from pml_common.contracts.decision import Policy
from pml_common.contracts.error import ErrorKind
from pml_common.contracts.gateway import ToolOutcome, WorkflowFinished
from pml_gateway.domain.workflow.direct_call import (
    NODE,
    STOPPED,
    begun_call,
    call_ended,
    call_of,
    is_open_call,
    ledger_entry,
    workflow_of_call,
)
from pml_gateway.domain.workflow.events import Cancelled, Due
from pml_gateway.domain.workflow.workflow_state import Workflow
from services.gateway.tests.support.builders import AT, SCOPE, later, workflow
from services.gateway.tests.support.steps import after

PATIENCE = timedelta(seconds=60)
OWNER = uuid4()


def begun() -> Workflow:
    """A call of `fs:write` that began at AT and may take 30 s."""
    return begun_call(
        SCOPE,
        "agent-7",
        "fs:write",
        {"path": "/a"},
        key="k",
        at=AT,
        timeout_s=30.0,
        patience=PATIENCE,
        policy=Policy(),
        traceparent=None,
    )


def test_it_is_a_program_of_one_call_and_runs_at_once() -> None:
    call = begun()
    assert is_open_call(call)
    assert not is_open_call(workflow())
    assert call.requested.code == 'return await mcp.call("fs:write", args);'
    assert call.due_at == later(90)
    asked = call_of(call, "fs:write")
    assert (asked.node_id, asked.args, asked.timeout_s) == (NODE, {"path": "/a"}, 30.0)
    assert asked.asked_first_at == AT


def test_a_result_ends_it_with_success_and_the_time_it_took() -> None:
    call = begun()
    asked = call_of(call, "fs:write")
    ended = call_ended(call, asked, ToolOutcome(status="ok", result=7), later(2))
    (task,) = ended.run.task_results
    assert (ended.run.success, ended.run.result, task.result) == (True, 7, 7)
    assert ended.run.duration_ms == task.duration_ms == 2000.0
    assert workflow_of_call(ended) == replace(call, due_at=AT)
    found = ledger_entry(ended, OWNER)
    assert found is not None
    assert found[0] == asked
    assert (found[1].owner, found[1].deadline) == (OWNER, later(30))
    assert found[1].outcome == ToolOutcome(status="ok", result=7)


@pytest.mark.parametrize(
    ("outcome", "kind", "stored"),
    [
        (ToolOutcome(status="tool_error", message="no"), "tool_error", "tool_error"),
        (ToolOutcome(status="timeout", message="late"), "timeout", "timeout"),
        (STOPPED, "outcome_unknown", "unknown"),
        (ToolOutcome(status="refused", message="denied"), "denied", None),
        (ToolOutcome(status="ask", message="denied"), "denied", None),
    ],
)
def test_a_failure_ends_it_with_its_kind_and_a_refusal_leaves_no_entry(
    outcome: ToolOutcome, kind: ErrorKind, stored: str | None
) -> None:
    call = begun()
    ended = call_ended(call, call_of(call, "fs:write"), outcome, later(-1))
    error = ended.run.error
    assert error is not None
    assert (error.kind, error.message, error.tool) == (kind, outcome.message, "fs:write")
    assert (ended.run.success, ended.run.duration_ms) == (False, 0.0)
    found = ledger_entry(ended, OWNER)
    assert (found and found[1].outcome and found[1].outcome.status) == stored


def test_a_program_has_no_entry() -> None:
    call = begun()
    ended = call_ended(call, call_of(call, "fs:write"), ToolOutcome(status="ok"), later(1))
    program = ended.requested.model_copy(update={"direct_tool": None})
    assert ledger_entry(ended.model_copy(update={"requested": program}), OWNER) is None


def test_one_that_its_gateway_left_has_an_unknown_outcome() -> None:
    failed, effects = after(begun(), Due(later(90)))
    assert isinstance(effects[-1], WorkflowFinished)
    assert failed.error is not None
    assert (failed.error.kind, failed.error.node_id) == ("outcome_unknown", NODE)
    assert "check what the call did before you make it again" in failed.error.message


def test_a_cancelled_one_may_have_taken_effect() -> None:
    failed, _ = after(begun(), Cancelled("mira", later(5), None))
    assert failed.error is not None
    assert failed.error.message == (
        "mira cancelled it. Its call of fs:write was cancelled, and may have taken effect."
    )
