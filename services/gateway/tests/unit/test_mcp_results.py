"""Executions as MCP tool results."""

import json
from datetime import UTC, datetime
from typing import Any, Literal, cast
from uuid import UUID

import pytest

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.contracts.trace import LogLine
from pml_gateway.domain.api.api import ApprovalAsked, ExecuteResponse
from pml_gateway.domain.api.calls import TaskAnswer
from pml_gateway.domain.api.mcp_results import cancel_result, execute_result, tool_call_result
from pml_gateway.domain.api.next_step import after_running, until_approved
from pml_gateway.domain.api.shown_arguments import ShownArgument
from pml_gateway.domain.api.shown_calls import ShownCall
from pml_gateway.domain.tool_calls.tool_result import outcome_of

WORKFLOW = UUID(int=7)
PLAIN = ToolDefinition(server="fs", name="write")
STRUCTURED = PLAIN.model_copy(update={"output_schema": {"type": "object"}})
EXPIRES_AT = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
WAITING = ExecuteResponse(
    status="approval_required",
    workflow_id=WORKFLOW,
    approval=ApprovalAsked(
        id=UUID(int=8),
        reasons=("fs:write changes things", "fs:move too"),
        tools=("fs:write",),
        calls=(),
        shown_digest="",
        whole_at="",
        expires_at=EXPIRES_AT,
    ),
    next=until_approved(WORKFLOW, EXPIRES_AT, None, is_layer=False),
)
RUNNING = ExecuteResponse(status="running", workflow_id=WORKFLOW, next=after_running(WORKFLOW))


def _text(result: JsonObject) -> str:
    content = result["content"]
    assert isinstance(content, list)
    (block,) = content
    assert isinstance(block, dict)
    return str(block["text"])


def test_a_response_is_complete_under_its_public_names() -> None:
    response = ExecuteResponse(status="success", result=None, workflow_id=WORKFLOW)
    result = execute_result(response)
    assert result["isError"] is False
    assert result["structuredContent"] == {
        "status": "success",
        "result": None,
        "workflowId": str(WORKFLOW),
    }


def test_an_answer_has_the_calls_that_matter_unless_all_are_asked_for() -> None:
    task = TaskAnswer(
        id="n1.0", node_id="n1", tool="fs:read", success=True, duration_ms=1.0, preview='"x"'
    )
    failed = task.model_copy(update={"id": "n1.1", "success": False})
    response = ExecuteResponse(status="success", result=1, tasks=(task, failed))
    shown = [execute_result(response), execute_result(response, "tasks")]
    tasks = [cast("dict[str, Any]", one["structuredContent"])["tasks"] for one in shown]
    ids = [[each["id"] for each in one] for one in tasks]
    assert ids == [["n1.1"], ["n1.0", "n1.1"]]


def test_a_pending_approval_of_a_tool_shows_its_calls_with_their_arguments() -> None:
    assert WAITING.approval is not None
    given = (
        ShownArgument(name="path", kind="caller", words="the caller's path", text='"/x"'),
        ShownArgument(name="mode", kind="computed", words="computed when it runs"),
    )
    call = ShownCall(
        node_id="n1",
        tool="fs:write",
        verdict="ask",
        line=1,
        column=1,
        how_often="once",
        arguments=given,
    )
    asked = WAITING.approval.model_copy(update={"calls": (call,), "more_calls": 2})
    text = _text(tool_call_result(PLAIN, WAITING.model_copy(update={"approval": asked})))
    assert 'fs:write(path = "/x", mode = computed when it runs)\nand 2 more calls' in text


def test_a_pending_approval_says_what_its_agent_needs_under_public_names() -> None:
    content = execute_result(WAITING)["structuredContent"]
    assert isinstance(content, dict)
    assert isinstance(content["approval"], dict)
    assert set(content["approval"]) == {"id", "reasons", "calls", "expiresAt"}


def test_a_pending_approval_is_not_an_error() -> None:
    result = execute_result(WAITING)
    assert result["isError"] is False
    assert '"expiresAt"' in _text(result)


def test_a_failure_is_described_with_its_location() -> None:
    error = WorkflowError(
        kind="syntax",
        message="cannot be read",
        tool="fs:write",
        arguments={"path": "/x"},
        line=2,
        column=5,
        diagnostics=(
            Diagnostic(
                severity="error", message="missing )", line=2, column=5, source_line="foo(("
            ),
            Diagnostic(severity="warning", message="unused", line=1, column=1),
        ),
    )
    result = execute_result(ExecuteResponse(status="error", error=error, workflow_id=WORKFLOW))
    assert result["isError"] is True
    assert _text(result) == (
        "syntax: cannot be read\n"
        'tool fs:write, called with {"path": "/x"}\n'
        "at line 2, column 5\n"
        "error at line 2, column 5: missing )\n"
        "    foo((\n"
        "warning at line 1, column 1: unused"
        f" (workflow {WORKFLOW})"
    )


def test_no_line_of_a_failure_is_said_twice() -> None:
    first = Diagnostic(severity="error", message="no await", line=2, column=5, source_line="f()")
    other = Diagnostic(severity="error", message="no await", line=3, column=1, source_line="g()")
    found = (first, other, other)
    for message in ("no await", "no await (and 2 more)"):
        error = WorkflowError(kind="rejected", message=message, line=2, column=5, diagnostics=found)
        answer = ExecuteResponse(
            status="error", error=error, warnings=(other, first), notices=("old", "old")
        )
        assert _text(execute_result(answer)) == (
            f"rejected: {message}\nat line 2, column 5\n    f()\n"
            "error at line 3, column 1: no await\n    g()\nnotice: old"
        )


def test_warnings_follow_the_reason_of_a_failure() -> None:
    error = WorkflowError(kind="user_error", message="no")
    warning = Diagnostic(severity="warning", message="no await", line=1, column=2, source_line="f")
    answer = ExecuteResponse(status="error", error=error, warnings=(warning,))
    assert _text(execute_result(answer)) == (
        "user_error: no\nwarning at line 1, column 2: no await\n    f"
    )


def test_a_failure_without_details_is_short() -> None:
    error = WorkflowError(kind="timeout", message="too slow")
    assert (
        _text(execute_result(ExecuteResponse(status="error", error=error))) == "timeout: too slow"
    )


@pytest.mark.parametrize(
    "answer",
    [ToolOutcome(status="ok", result={"a": 1}), ExecuteResponse(status="success", result={"a": 1})],
)
def test_a_tools_value_is_the_same_called_directly_or_by_a_program(
    answer: ToolOutcome | ExecuteResponse,
) -> None:
    assert tool_call_result(STRUCTURED, answer)["structuredContent"] == {"a": 1}
    plain = tool_call_result(PLAIN, answer)
    assert "structuredContent" not in plain
    assert _text(plain) == '{"a": 1}'


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ToolOutcome(status="tool_error", message="disk full"), "disk full"),
        (ToolOutcome(status="refused"), "refused"),
        (ExecuteResponse(status="running", workflow_id=WORKFLOW), f"running (workflow {WORKFLOW})"),
        (WAITING, "fs:write: not run yet: a person must approve it first (workflow 00000000-"),
        (WAITING, "00000007). fs:write changes things fs:move too\nAsk a person to decide before"),
        (WAITING, "before 2030-01-02 03:04 UTC. Call pml_get_task_result: it waits for the"),
        (WAITING, f"\nworkflow_id: {WORKFLOW}; approve: `pml approvals approve {WORKFLOW}`; deny"),
        (RUNNING, f"Call pml_get_task_result with workflow_id {WORKFLOW}."),
    ],
)
def test_a_tool_without_a_value_gives_the_reason(
    answer: ToolOutcome | ExecuteResponse, words: str
) -> None:
    result = tool_call_result(STRUCTURED, answer)
    assert result["isError"] is True
    assert words in _text(result)


def test_an_image_of_a_program_is_a_block_and_nothing_else() -> None:
    image: JsonObject = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    value: JsonObject = {"caption": "a cat", "shot": image}
    result = execute_result(ExecuteResponse(status="success", result=value))
    content = result["content"]
    assert isinstance(content, list)
    assert content[1:] == [image]
    note: JsonObject = {"type": "image", "content_block": 1, "mimeType": "image/png"}
    whole: JsonObject = {"status": "success", "result": {"caption": "a cat", "shot": note}}
    assert result["structuredContent"] == whole
    assert content[0] == {"type": "text", "text": json.dumps(whole)}


def test_the_answer_of_a_tool_is_passed_on() -> None:
    answer: JsonObject = {
        "content": [{"type": "text", "text": "no such page"}],
        "structuredContent": {"code": 404},
        "isError": True,
    }
    assert tool_call_result(PLAIN, outcome_of(answer)) == answer


def test_a_failed_programs_console_is_part_of_the_text() -> None:
    error = WorkflowError(kind="user_error", message="stop")
    lines = tuple(LogLine(level="info", message=f"line {n}") for n in range(30))
    text = _text(execute_result(ExecuteResponse(status="error", error=error, logs=lines)))
    assert text.startswith("user_error: stop\nconsole, after 10 earlier lines:\n  info: line 10\n")
    assert text.endswith("line 29")
    before = ExecuteResponse(status="error", error=error, logs=lines, logs_omitted=19_970)
    result = execute_result(before)
    assert "console, after 19,980 earlier lines:" in _text(result)
    assert cast(JsonObject, result["structuredContent"])["logsOmitted"] == 19_970
    few = ExecuteResponse(status="error", error=error, logs=lines[:1])
    assert _text(execute_result(few)) == "user_error: stop\nconsole:\n  info: line 0"


def test_a_program_that_fails_by_itself_is_told_what_its_tools_gave() -> None:
    error = WorkflowError(kind="user_error", message="TypeError: log.split is not a function")
    previews = {"a:old": "1", "a:b": '"first"', "git:log": '[{"type"…', "fs:stat": '{"size"…'}
    tasks = tuple(_task(tool, preview) for tool, preview in previews.items())
    again, failed = _task("a:b", '"again"'), _task("a:c", "").model_copy(update={"success": False})
    failure = ExecuteResponse(status="error", error=error, tasks=(*tasks, again, failed))
    assert _text(execute_result(failure)) == (
        "user_error: TypeError: log.split is not a function\n"
        'a:b gave a string: "again"\ngit:log gave a list: [{"type"…\n'
        'fs:stat gave an object: {"size"…'
    )
    refused = error.model_copy(update={"kind": "tool_error"})
    other = failure.model_copy(update={"error": refused})
    assert "gave" not in _text(execute_result(other))


def _task(tool: str, preview: str) -> TaskAnswer:
    return TaskAnswer(
        id="n1", node_id="n1", tool=tool, success=True, duration_ms=1.0, preview=preview
    )


@pytest.mark.parametrize(("kind", "is_error"), [("cancelled", False), ("timeout", True)])
def test_a_workflow_that_ended_as_cancelled_is_no_failed_cancellation(
    kind: Literal["cancelled", "timeout"], is_error: bool
) -> None:
    error = WorkflowError(kind=kind, message="it ended")
    result = cancel_result(ExecuteResponse(status="error", error=error, workflow_id=WORKFLOW))
    assert result["isError"] is is_error
    assert "it ended" in _text(result)
    assert cancel_result(RUNNING)["isError"] is False


def test_what_a_server_asks_for_is_returned_as_it_is() -> None:
    asked: JsonObject = {"resultType": "input_required", "inputRequests": {"who": {}}}
    assert tool_call_result(PLAIN, outcome_of(asked)) == asked
