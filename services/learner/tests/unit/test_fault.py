"""Attribution of failed runs."""

from typing import get_args
from uuid import uuid4

import pytest

from pml_common.contracts import ids
from pml_common.contracts.error import ErrorKind, Fault, WorkflowError
from pml_common.contracts.executor import RunFinished
from pml_learner.domain.fault import faults_of
from services.learner.tests.support.builders import finished_run, nested_run, tool_call

CALLER: set[ErrorKind] = {"denied", "cancelled"}
ENVIRONMENT: set[ErrorKind] = {"outcome_unknown", "internal"}
AWAY = WorkflowError(kind="tool_error", message="fs is not connected", fault="environment")


def _fault(run: RunFinished) -> Fault | None:
    return faults_of(run).get(run.trace_id)


def _failed(error: WorkflowError | None, *inside: WorkflowError) -> RunFinished:
    calls = [
        tool_call("fs:read", 0, 1).model_copy(update={"success": False, "error": each})
        for each in inside
    ]
    return finished_run(success=False, calls=calls).model_copy(update={"error": error})


@pytest.mark.parametrize("kind", get_args(ErrorKind))
def test_each_kind_of_error_is_somebodys_fault(kind: ErrorKind) -> None:
    expected = "caller" if kind in CALLER else "environment" if kind in ENVIRONMENT else None
    assert _fault(_failed(WorkflowError(kind=kind, message="no"))) == (expected or "capability")


def test_a_run_that_succeeded_is_nobodys_fault() -> None:
    assert faults_of(finished_run()) == {}


def test_an_end_without_an_error_is_the_capabilitys_fault() -> None:
    assert _fault(_failed(None)) == "capability"


def test_an_error_that_says_whose_fault_it_is_is_believed_and_a_denial_needs_not_to() -> None:
    forgotten = WorkflowError(kind="user_error", message="path is undefined", fault="caller")
    assert _fault(_failed(forgotten)) == "caller"
    assert _fault(_failed(AWAY)) == "environment"
    denied = WorkflowError(kind="denied", message="no", fault="environment")
    assert _fault(_failed(denied)) == "caller"


def test_a_time_out_while_waiting_for_a_tool_is_the_environments_fault() -> None:
    timeout = WorkflowError(kind="timeout", message="it took longer than 5 s")
    waiting = WorkflowError(kind="outcome_unknown", message="the run ended before")
    assert _fault(_failed(timeout, waiting)) == "environment"
    assert _fault(_failed(timeout, AWAY)) == "capability"


@pytest.mark.parametrize(
    ("message", "fault"),
    [("cannot list: fs is not connected", "environment"), ("cannot list", "capability")],
)
def test_an_error_thrown_again_in_other_words_keeps_its_fault(message: str, fault: Fault) -> None:
    assert _fault(_failed(WorkflowError(kind="user_error", message=message), AWAY)) == fault


def test_a_nested_capability_is_judged_by_its_own_end_not_by_its_callers() -> None:
    workflow = uuid4()
    root = ids.root_trace_id(workflow)
    good = nested_run(root, "cd" * 32)
    bad = nested_run(root, "ef" * 32, "n2", success=False).model_copy(
        update={"error": WorkflowError(kind="user_error", message="no price")}
    )
    caught = finished_run(nested=[good, bad], workflow_id=workflow)
    assert faults_of(caught) == {bad.trace_id: "capability"}
    failed = finished_run(nested=[good], workflow_id=workflow, success=False)
    assert faults_of(failed) == {root: "capability"}


def test_a_caller_that_failed_only_by_the_environment_of_a_nested_capability_has_that_fault() -> (
    None
):
    workflow = uuid4()
    root = ids.root_trace_id(workflow)
    inner = nested_run(root, "cd" * 32, success=False).model_copy(update={"error": AWAY})
    passed_on = AWAY.model_copy(update={"message": f"a:ccd: {AWAY.message}"})
    told_again = WorkflowError(kind="user_error", message=f"no report: {AWAY.message}")
    for error in (passed_on, told_again):
        run = finished_run(nested=[inner], workflow_id=workflow, success=False)
        run = run.model_copy(update={"error": error})
        assert faults_of(run) == {root: "environment", inner.trace_id: "environment"}
