"""Workflows as tasks of MCP's tasks extension (SEP-2663), which its clients poll.

A task is named by its workflow and by the tool whose call began it, in whose form its result is
returned: nothing about a task is stored.
"""

from collections.abc import Mapping
from typing import Final, TypeVar
from uuid import UUID

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.approval_form import SCHEMA, ApprovalForm, AskedApproval
from pml_gateway.domain.workflow.workflow import Workflow

EXTENSION: Final = "io.modelcontextprotocol/tasks"
INPUT: Final = "input-"
"""Begins the keys of requests that a tool's server makes."""

_POLL_MS: Final = 500
_LONGEST_STATUS: Final = 2000

T = TypeVar("T")


class TaskBegun(Exception):
    """The call goes on as a task, which is this workflow; `response` is for its state."""

    def __init__(self, workflow_id: UUID, response: ExecuteResponse) -> None:
        super().__init__(f"workflow {workflow_id} goes on as a task")
        self.workflow_id = workflow_id
        self.response = response


def declares_tasks(capabilities: JsonObject) -> bool:
    """Whether a client with these capabilities polls tasks."""
    extensions = capabilities.get("extensions")
    return isinstance(extensions, dict) and EXTENSION in extensions


def or_task(answer: T, *, as_task: bool) -> T:
    """Return the answer of a call. Raises TaskBegun where its workflow goes on `as_task`."""
    if not as_task or not isinstance(answer, ExecuteResponse) or answer.workflow_id is None:
        return answer
    if answer.status in ("running", "approval_required"):
        raise TaskBegun(answer.workflow_id, answer)
    return answer


def task_id_of(workflow_id: UUID, tool: str) -> str:
    """Return the id of the task that the call of a tool, by this name, began."""
    return f"{workflow_id}:{tool}"


def named_in(task_id: str) -> tuple[UUID, str] | None:
    """Return the workflow and the tool of a task; None for an id that no task has."""
    workflow_id, colon, tool = task_id.partition(":")
    try:
        found = UUID(workflow_id)
    except ValueError:
        return None
    return (found, tool) if colon and tool and str(found) == workflow_id else None


def key_of(asked: AskedApproval) -> str:
    """Return the key of the request for an approval; no other approval of the task has it."""
    return f"approval-{asked.approval_id}"


def task_of(
    workflow: Workflow,
    tool: str,
    ttl_ms: int | None,
    response: ExecuteResponse,
    form: ApprovalForm | None,
    inputs: Mapping[str, JsonObject],
    result: JsonObject,
) -> JsonObject:
    """Build the task of a workflow: `form` is for the approval that it waits for, where the
    client's user can be asked, `inputs` are what its tool's server asks for, and `result` is that
    of the call, once the workflow has ended."""
    approval, requested_at = workflow.approval, workflow.requested.requested_at
    asked_at = (approval.decided_at or approval.requested_at) if approval else None
    task: JsonObject = {
        "taskId": task_id_of(workflow.workflow_id, tool),
        "createdAt": requested_at.isoformat(),
        "lastUpdatedAt": (workflow.finished_at or asked_at or requested_at).isoformat(),
        "ttlMs": ttl_ms,
        "pollIntervalMs": _POLL_MS,
    }
    requests: JsonObject = dict(inputs)
    if form is not None:
        requests[key_of(form.asked)] = {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": form.message, "requestedSchema": SCHEMA},
        }
    if workflow.finished_at is None and requests:
        return {**task, "status": "input_required", "inputRequests": requests}
    if workflow.finished_at is None:
        said = response.next.text if response.next else ""
        return {**task, "status": "working", "statusMessage": said[:_LONGEST_STATUS]}
    if response.error is not None and response.error.kind == "cancelled":
        said = response.error.message[:_LONGEST_STATUS]
        return {**task, "status": "cancelled", "statusMessage": said}
    if response.error is not None and response.error.code is not None:
        error: JsonObject = {"code": response.error.code, "message": response.error.message}
        return {**task, "status": "failed", "error": error}
    return {**task, "status": "completed", "result": result}


def why_no_answer(request: JsonObject, answer: JsonObject) -> str | None:
    """Explain why this cannot be the answer to an MCP request; None where it may be."""
    match request.get("method"):
        case "elicitation/create":
            if answer.get("action") in ("accept", "decline", "cancel"):
                return None
            return "must have an action: accept, decline or cancel"
        case "sampling/createMessage":
            missing = [each for each in ("role", "content", "model") if each not in answer]
            return f"has no {' and no '.join(missing)}" if missing else None
        case _:
            return None if isinstance(answer.get("roots"), list) else "must have a list of roots"
