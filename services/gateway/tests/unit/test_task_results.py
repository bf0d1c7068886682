"""Results of workflows and of their tasks, page by page."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import JsonValue, ValidationError

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import NestedRun
from pml_gateway.domain.api.api import ExecuteResponse, ResultPage
from pml_gateway.domain.api.errors import InvalidRequest, ResultUnavailable
from pml_gateway.domain.api.task_results import Format, GetTaskResult, paged, task_response
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.run_command import run_command
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    AT,
    VERDICTS,
    analyzed,
    finished,
    later,
    made,
    workflow,
)
from services.gateway.tests.support.parked_runs import by_name, parked, parked_event
from services.gateway.tests.support.steps import after

NEW = workflow()
HOUR = timedelta(hours=1)
LONG = "é" * 300
FAULT = WorkflowError(kind="tool_error", message="disk full", node_id="n2", tool="fs:read")
RUNNING = after(NEW, Analyzed(analyzed(NEW), AT))[0]
CALLS = (made(result=LONG), made(node_id="n2", error=FAULT, started_at=1.0))
ENDED = after(NEW, Analyzed(analyzed(NEW), AT), finished(NEW, result=1, calls=CALLS))[0]


def asking(**more: object) -> GetTaskResult:
    return GetTaskResult.model_validate({"workflow_id": str(NEW.workflow_id), **more})


def page_of(value: JsonValue, **more: object) -> ResultPage:
    response = paged(ExecuteResponse(status="success", result=value), asking(**more))
    assert response.page is not None
    assert "result" not in json.loads(response.to_json())
    return response.page


def test_a_result_that_fits_comes_as_its_value() -> None:
    response = ExecuteResponse(status="success", result={"a": None})
    assert paged(response, asking()) is response
    assert paged(response, asking(limit=len('{"a": null}'))) is response


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("value", ["x" * 25, [1, {"é": [None]}], {"a": "b" * 30}])
def test_the_pages_of_a_result_are_its_text_without_gap_or_overlap(
    value: JsonValue, form: Format
) -> None:
    text, offset = "", 0
    while True:
        page = page_of(value, limit=7, offset=offset, format=form)
        assert page.offset == len(text)
        text += page.text
        if page.next_offset is None:
            break
        offset = page.next_offset
    assert len(text) == page.total
    assert (text if form == "text" and isinstance(value, str) else json.loads(text)) == value


def test_text_is_for_reading() -> None:
    assert page_of("as it is", format="text").text == "as it is"
    assert page_of({"a": [1]}, format="text").text == '{\n  "a": [\n    1\n  ]\n}'
    assert page_of("", format="text") == ResultPage(text="", offset=0, total=0)


def test_an_offset_past_the_end_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match="offset is past the end: the result has 4 characters"):
        paged(ExecuteResponse(status="success", result=None), asking(offset=4))


@pytest.mark.parametrize(
    "fault",
    [
        {"offset": -1},
        {"offset": 2**31},
        {"limit": 0},
        {"limit": 200_001},
        {"wait_s": 46},
        {"wait_s": -1},
        {"format": "xml"},
        {"task_id": ""},
        {"workflow_id": "x"},
        {"more": 1},
    ],
)
def test_bad_arguments_are_refused(fault: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        asking(**fault)


def told(of: Workflow, task_id: str, at_s: float = 2.0) -> ExecuteResponse:
    return task_response(of, task_id, later(at_s), HOUR)


def test_a_tasks_whole_result_is_behind_its_preview() -> None:
    response = told(ENDED, "n1.0")
    assert (response.status, response.result) == ("success", LONG)
    assert response.task is not None
    assert len(response.task.preview) == 240
    failed = told(ENDED, "n2.0")
    assert (failed.status, failed.error) == ("error", FAULT)


def test_the_result_of_a_called_capability_is_asked_for_as_that_of_a_task() -> None:
    run = finished(NEW, calls=[])
    nested = NestedRun(
        trace_id=run.trace_id,
        parent_trace_id=run.trace_id,
        node_id="n3",
        occurrence=1,
        capability=run.capability,
        name="fs:count",
        success=True,
        result=LONG,
        started_at=1.0,
        duration_ms=2.0,
    )
    ended = after(NEW, Analyzed(analyzed(NEW), AT), run.model_copy(update={"nested": (nested,)}))[0]
    response = told(ended, "n3.1")
    assert response.result == LONG
    assert response.task is not None
    assert response.task.tool == "fs:count"


def test_unknown_not_yet_and_expired_are_three_errors() -> None:
    with pytest.raises(ResultUnavailable, match=r"no task n9\.0; it has n1\.0, n2\.0$") as unknown:
        told(ENDED, "n9.0")
    with pytest.raises(ResultUnavailable, match="wait with wait_s") as not_yet:
        told(RUNNING, "n1.0")
    with pytest.raises(ResultUnavailable, match="omit task_id") as expired:
        told(ENDED, "n1.0", 1 + HOUR.total_seconds())
    kinds = [each.value.kind for each in (unknown, not_yet, expired)]
    assert kinds == ["unknown", "not_yet", "expired"]
    assert told(ENDED, "n1.0", HOUR.total_seconds()).result == LONG


def test_the_tasks_that_a_workflow_has_are_named_up_to_ten() -> None:
    many = [made(node_id=f"n{n}") for n in range(12)]
    long = after(NEW, Analyzed(analyzed(NEW), AT), finished(NEW, calls=many))[0]
    with pytest.raises(ResultUnavailable, match=r"n9\.0, …$"):
        told(long, "x")
    none = after(NEW, Analyzed(analyzed(NEW), AT), finished(NEW))[0]
    with pytest.raises(ResultUnavailable, match="it made no call"):
        told(none, "x")


def test_the_tasks_of_a_parked_run_are_known() -> None:
    run = after(NEW, Analyzed(by_name(NEW, "allow"), AT, verdicts=VERDICTS))[0]
    assert run.analysis is not None
    assert run.grant is not None
    command = run_command(run, run.analysis, run.grant, Analyzed(run.analysis, AT))
    waits = after(run, parked_event(parked(command, calls=CALLS), AT))[0]
    assert waits.state == "awaiting_approval"
    assert told(waits, "n1.0").result == LONG
    assert told(replace(waits, due_at=None), "n1.0", 10**6).result == LONG
    with pytest.raises(ResultUnavailable, match="not known yet"):
        told(waits, "n7.0")
