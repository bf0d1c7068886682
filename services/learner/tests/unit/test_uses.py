"""Uses: the tools and capabilities that served the intent of a run."""

from typing import Any
from uuid import uuid4

import pytest

from pml_common.contracts import ids
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.uses import MAX_INTENT, MAX_SERVED, ObservedUse
from pml_learner.domain.uses import use_of, uses_observed
from services.learner.tests.support.builders import (
    ELSEWHERE,
    SCOPE,
    STARTED_AT,
    finished_run,
    nested_run,
    tool_call,
)

READ = tool_call("fs:read", 0, 1)
WRITE = tool_call("fs:write", 2, 3)
FAILED = tool_call("fs:stat", 4, 5).model_copy(update={"success": False})


def run_with(run: RunFinished | None = None, **fields: object) -> RunFinished:
    return (run or finished_run(calls=[READ, WRITE])).model_copy(update=fields)


def used(run: RunFinished) -> ObservedUse:
    found = use_of(run)
    assert found is not None
    return found


def test_tools_whose_calls_succeeded_served_the_intent_each_once() -> None:
    discovery = uuid4()
    run = run_with(finished_run(calls=[READ, FAILED, WRITE, READ]), discovery_id=discovery)
    assert use_of(run) == ObservedUse(
        workflow_id=run.workflow_id,
        principal="agent-7",
        intent="make sure the notes exist",
        discovery_id=discovery,
        tools=("fs:read", "fs:write"),
        observed_at=STARTED_AT,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"dry_run": True},
        {"success": False},
        {"void": True},
        {"intent": None},
        {"intent": " \x00 "},
    ],
    ids=["dry run", "failed", "without a result", "no intent", "blank intent"],
)
def test_runs_that_teach_nothing(fields: dict[str, Any]) -> None:
    assert use_of(run_with(**fields)) is None


def test_a_run_in_which_nothing_succeeded_is_no_use() -> None:
    mocked = READ.model_copy(update={"mocked": True})
    assert use_of(finished_run(calls=[FAILED, mocked])) is None


def test_capabilities_called_by_name_served_and_a_program_of_the_caller_did_not() -> None:
    workflow = uuid4()
    root = ids.root_trace_id(workflow)
    inner = nested_run(root, "cd" * 32)
    failed = nested_run(root, "ef" * 32, "n2", success=False)
    own = finished_run(nested=[inner, failed, inner], workflow_id=workflow)
    assert used(own).capabilities == (inner.capability.capability_id,)
    by_name = run_with(own, called_as="fs:ensure")
    itself = own.capability.capability_id
    assert used(by_name).capabilities == (itself, inner.capability.capability_id)


def test_a_use_is_bounded() -> None:
    calls = [tool_call(f"fs:t{number}", 0, 1) for number in range(MAX_SERVED + 5)]
    found = used(run_with(finished_run(calls=[tool_call("fs:" + "x" * 300, 0, 1), *calls])))
    assert found.tools == tuple(call.tool for call in calls[:MAX_SERVED])
    assert len(used(run_with(intent="w" * (MAX_INTENT + 1))).intent) == MAX_INTENT


def test_a_batch_has_one_message_for_each_scope_with_its_last_use() -> None:
    first, second = run_with(), run_with()
    silent, other = run_with(intent=None), finished_run(calls=[READ], scope=ELSEWHERE)
    messages = uses_observed([first, other, second, silent])
    assert set(messages) == {second.event_id, other.event_id}
    (of_scope, elsewhere) = messages[second.event_id], messages[other.event_id]
    assert (of_scope.scope, elsewhere.scope) == (SCOPE, ELSEWHERE)
    assert [use.workflow_id for use in of_scope.uses] == [first.workflow_id, second.workflow_id]
    assert of_scope.workflow_id == second.workflow_id
    assert of_scope.event_id == ids.effect_id(second.event_id, "uses-observed")
