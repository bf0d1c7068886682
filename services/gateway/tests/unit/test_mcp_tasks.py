"""Workflows as tasks of MCP's tasks extension."""

from dataclasses import replace
from uuid import UUID

import pytest

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.approval_form import form_of
from pml_gateway.domain.api.mcp_tasks import (
    EXTENSION,
    TaskBegun,
    declares_tasks,
    key_of,
    named_in,
    or_task,
    task_id_of,
    task_of,
    why_no_answer,
)
from pml_gateway.domain.api.next_step import after_running
from pml_gateway.domain.workflow.direct_call import is_open_call
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import advance
from services.gateway.tests.support.builders import AT, RULES, analyzed, later, workflow

NEW = workflow()
WAITING, _ = advance(NEW, Analyzed(analyzed(NEW, "ask"), later(2)), RULES)
ID = NEW.workflow_id
RESULT: JsonObject = {"content": [], "isError": False}
GOES_ON = ExecuteResponse(status="running", workflow_id=ID, next=after_running(ID))


@pytest.mark.parametrize(
    ("capabilities", "declares"),
    [
        ({}, False),
        ({"extensions": {}}, False),
        ({"extensions": True}, False),
        ({"extensions": {EXTENSION: {}}}, True),
    ],
)
def test_tasks_are_for_clients_that_declare_them(capabilities: JsonObject, declares: bool) -> None:
    assert declares_tasks(capabilities) is declares


@pytest.mark.parametrize("status", ["running", "approval_required"])
def test_what_goes_on_becomes_a_task(status: str) -> None:
    answer = ExecuteResponse.model_validate({"status": status, "workflow_id": ID}, by_name=True)
    with pytest.raises(TaskBegun) as begun:
        or_task(answer, as_task=True)
    assert (begun.value.workflow_id, begun.value.response) == (ID, answer)
    assert or_task(answer, as_task=False) is answer


@pytest.mark.parametrize(
    "answer",
    [
        ExecuteResponse(status="success", workflow_id=ID),
        ExecuteResponse(status="suggestions"),
        "the outcome of a tool",
    ],
)
def test_what_is_done_is_answered(answer: object) -> None:
    assert or_task(answer, as_task=True) is answer


def test_a_tasks_id_names_its_workflow_and_its_tool() -> None:
    for tool in ("pml_execute", "fs:read"):
        assert named_in(task_id_of(ID, tool)) == (ID, tool)


@pytest.mark.parametrize(
    "form", ["", "x", "{id}", "{id}:", ":{id}", "{{{id}}}:x", "{upper}:x", "x:y"]
)
def test_other_ids_are_of_no_task(form: str) -> None:
    assert named_in(form.format(id=ID, upper=str(ID).upper())) is None


def test_a_task_that_runs_says_how_it_stands() -> None:
    assert task_of(NEW, "pml_execute", 60_000, GOES_ON, None, {}, {}) == {
        "taskId": f"{ID}:pml_execute",
        "status": "working",
        "statusMessage": after_running(ID).message,
        "createdAt": AT.isoformat(),
        "lastUpdatedAt": AT.isoformat(),
        "ttlMs": 60_000,
        "pollIntervalMs": 500,
    }
    assert (
        task_of(NEW, "x", 1, ExecuteResponse(status="running"), None, {}, {})["statusMessage"] == ""
    )


def test_a_task_that_waits_for_its_user_has_the_form() -> None:
    form = form_of(WAITING, later(3))
    assert form is not None
    task = task_of(WAITING, "x", 1, GOES_ON, form, {}, {})
    assert task["status"] == "input_required"
    assert task["lastUpdatedAt"] == later(2).isoformat()
    requests = task["inputRequests"]
    assert isinstance(requests, dict)
    (key,) = requests
    assert key == key_of(form.asked) == f"approval-{form.asked.approval_id}"
    other = replace(form.asked, approval_id=UUID(int=9))
    assert key_of(other) != key


def test_an_ended_task_has_the_result_of_the_call() -> None:
    ended = replace(NEW, state="failed", finished_at=later(9))
    failed = WorkflowError(kind="user_error", message="no")
    for response in (
        ExecuteResponse(status="success", result=1),
        ExecuteResponse(status="error", error=failed),
    ):
        task = task_of(ended, "x", 1, response, None, {}, RESULT)
        assert (task["status"], task["result"]) == ("completed", RESULT)
        assert task["lastUpdatedAt"] == later(9).isoformat()
    stopped = WorkflowError(kind="cancelled", message="mira cancelled it")
    task = task_of(ended, "x", 1, ExecuteResponse(status="error", error=stopped), None, {}, RESULT)
    assert (task["status"], task["statusMessage"]) == ("cancelled", "mira cancelled it")
    assert "result" not in task


def test_a_task_has_what_its_tools_server_asks_for() -> None:
    asked: JsonObject = {"method": "roots/list", "params": {}}
    task = task_of(NEW, "x", 1, GOES_ON, None, {"input-1": asked}, {})
    assert (task["status"], task["inputRequests"]) == ("input_required", {"input-1": asked})
    ended = replace(NEW, state="succeeded", finished_at=later(9))
    done = ExecuteResponse(status="success", result=1)
    assert task_of(ended, "x", 1, done, None, {"input-1": asked}, RESULT)["status"] == "completed"


def test_a_task_fails_by_an_error_of_the_protocol_alone() -> None:
    ended = replace(NEW, state="failed", finished_at=later(9))
    error = WorkflowError(kind="tool_error", message="it broke", code=-32603)
    broken = ExecuteResponse(status="error", error=error)
    task = task_of(ended, "x", 1, broken, None, {}, RESULT)
    assert (task["status"], task["error"]) == ("failed", {"code": -32603, "message": "it broke"})
    assert "result" not in task


@pytest.mark.parametrize(
    ("method", "answer", "why"),
    [
        ("elicitation/create", {"action": "decline"}, None),
        ("elicitation/create", {"action": "yes"}, "must have an action"),
        ("sampling/createMessage", {"role": "user", "content": {}, "model": "m"}, None),
        ("sampling/createMessage", {"role": "user"}, "has no content and no model"),
        ("roots/list", {"roots": []}, None),
        ("roots/list", {"roots": {}}, "must have a list of roots"),
    ],
)
def test_an_answer_fits_its_request(method: str, answer: JsonObject, why: str | None) -> None:
    found = why_no_answer({"method": method}, answer)
    assert (found is None) == (why is None)
    assert (why or "") in (found or "")


def test_only_a_direct_call_under_way_is_open() -> None:
    requested = NEW.requested.model_copy(update={"direct_tool": "fs:read"})
    under_way = replace(NEW, requested=requested, state="running")
    assert is_open_call(under_way)
    assert not is_open_call(replace(under_way, state="failed"))
    assert not is_open_call(replace(NEW, state="running"))
