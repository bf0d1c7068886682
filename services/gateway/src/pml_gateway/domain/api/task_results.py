"""Results of workflows and of their tasks, asked for later, and page by page."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import Field, JsonValue, StringConstraints

from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.api.api import ExecuteResponse, ResultPage
from pml_gateway.domain.api.errors import InvalidRequest, ResultUnavailable
from pml_gateway.domain.api.request import MAX_OFFSET, Request
from pml_gateway.domain.api.responses import status_of, task_answer
from pml_gateway.domain.workflow.workflow_state import Workflow

LONGEST_WAIT_S: Final = 45
"""Common clients give a call up after 60 seconds."""

_PAGE: Final = 20_000
_LONGEST_PAGE: Final = 200_000

Format = Literal["json", "text"]
Part = Literal["result", "console"]
TaskId = Annotated[str, StringConstraints(min_length=1, max_length=400)]


class GetTaskResult(Request):
    """Arguments of `pml_get_task_result`."""

    workflow_id: UUID = Field(description="`workflowId` of an answer.")
    task_id: TaskId | None = Field(
        default=None,
        description="`id` of one of its `tasks`, for that task's whole result; omit it for the "
        "workflow's own result.",
    )
    part: Part = Field(
        default="result",
        description="`console`: pages of all lines kept of what the program wrote to its console, "
        "in place of the result.",
    )
    wait_s: float = Field(
        default=0,
        ge=0,
        le=LONGEST_WAIT_S,
        description="Seconds to wait for a person's decision and for the end.",
    )
    offset: int = Field(
        default=0,
        ge=0,
        lt=MAX_OFFSET,
        description="Characters of the result before the page: `next_offset` of the page before.",
    )
    limit: int = Field(
        default=_PAGE, ge=1, le=_LONGEST_PAGE, description="Characters of a page at most."
    )
    format: Format = Field(
        default="json",
        description="`json`: the value, or pages of its JSON where that is longer than `limit`; "
        "`text`: pages of text for reading, a string as it is and JSON indented.",
    )


def paged(response: ExecuteResponse, asked: GetTaskResult) -> ExecuteResponse:
    """Return the response with the asked page in place of its result; with the whole value where
    that is asked for and fits into one. Raises InvalidRequest where the offset is past the end."""
    value = response.result
    text = _text(value, asked.format)
    if asked.format == "json" and asked.offset == 0 and len(text) <= asked.limit:
        return response
    page = _page(text, asked)
    others = response.model_fields_set - {"result"}
    fields = {name: getattr(response, name) for name in others}
    return ExecuteResponse.model_validate({**fields, "page": page}, by_name=True)


def _page(text: str, asked: GetTaskResult) -> ResultPage:
    if asked.offset > max(0, len(text) - 1):
        raise InvalidRequest(
            "offset", f"is past the end: the {asked.part} has {len(text)} characters"
        )
    end = asked.offset + asked.limit
    return ResultPage(
        text=text[asked.offset : end],
        offset=asked.offset,
        total=len(text),
        next_offset=end if end < len(text) else None,
    )


def console_response(workflow: Workflow, asked: GetTaskResult) -> ExecuteResponse:
    """Build the response with a page of the lines kept of the console; `logs_omitted` are those
    before them, which only the journal has. Raises InvalidRequest where the offset is past the end,
    or a task is named."""
    if asked.task_id is not None:
        raise InvalidRequest("part", "console is of the whole workflow: omit task_id")
    run = workflow.run or workflow.parked
    lines = run.logs if run else ()
    if asked.format == "json":
        text = json.dumps([line.model_dump() for line in lines], ensure_ascii=False)
    else:
        text = "\n".join(f"{line.level}: {line.message}" for line in lines)
    return ExecuteResponse(
        status=status_of(workflow),
        workflow_id=workflow.workflow_id,
        logs_omitted=run.logs_omitted if run else 0,
        page=_page(text, asked),
    )


def task_response(
    workflow: Workflow, task_id: str, now: datetime, ttl: timedelta
) -> ExecuteResponse:
    """Build the response for one task: its whole result or error. Raises ResultUnavailable: while
    the workflow runs (`not_yet`), `ttl` after its end (`expired`), or where it has no such task
    (`unknown`)."""
    known, name = workflow.run or workflow.parked, f"workflow {workflow.workflow_id}"
    if workflow.finished_at is not None and now >= workflow.finished_at + ttl:
        kept = (workflow.finished_at + ttl).isoformat(timespec="seconds")
        raise ResultUnavailable(
            "expired",
            f"the results of the tasks of {name} were kept until {kept}. Its own result is still "
            "there: omit task_id",
        )
    calls = {task_answer(call).id: call for call in _calls(known)} if known else {}
    call = calls.get(task_id)
    if call is None and workflow.finished_at is None:
        raise ResultUnavailable(
            "not_yet",
            f"{name} has not ended, and the result of task {task_id} is not known yet: wait with "
            "wait_s",
        )
    if call is None:
        raise ResultUnavailable("unknown", f"{name} has no task {task_id}{_among(list(calls))}")
    return _of_task(workflow.workflow_id, call)


def _calls(run: RunFinished | WorkflowParked) -> Sequence[TaskResult]:
    """The tool calls of a run, and its calls of capabilities in the same form."""
    nested = [
        TaskResult(
            node_id=call.node_id,
            occurrence=call.occurrence,
            tool=call.name,
            args={},
            success=call.success,
            result=call.result,
            error=call.error,
            trace_id=call.trace_id,
            parent_trace_id=call.parent_trace_id,
            started_at=call.started_at,
            duration_ms=call.duration_ms,
        )
        for call in run.nested
    ]
    return (*run.task_results, *nested)


def _of_task(workflow_id: UUID, call: TaskResult) -> ExecuteResponse:
    task = task_answer(call)
    if call.success:
        return ExecuteResponse(
            status="success", workflow_id=workflow_id, task=task, result=call.result
        )
    return ExecuteResponse(status="error", workflow_id=workflow_id, task=task, error=call.error)


def _among(known: list[str]) -> str:
    shown = ", ".join(known[:10])
    return f"; it has {shown}{', …' if len(known) > 10 else ''}" if known else ": it made no call"


def _text(value: JsonValue, form: Format) -> str:
    if form == "json":
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
