"""Direct calls: workflows of one tool call, which the gateway makes itself.

Such a call stands for a program that is always the same, so nothing is left to analyse or to run in
a sandbox.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.decision import Policy
from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.error import ErrorKind, WorkflowError
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import CallTool, ExecutionRequested, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.tool_calls.ledger import Entry, fingerprint
from pml_gateway.domain.workflow.workflow_state import Workflow

NODE: Final = "n1"
"""The node of the one call."""

STOPPED: Final = ToolOutcome(
    status="unknown",
    message="the gateway stopped during the call, and its outcome is unknown: check what it did "
    "before you call again",
)

_KINDS: Final[Mapping[Literal["tool_error", "refused", "ask", "timeout", "unknown"], ErrorKind]] = {
    "tool_error": "tool_error",
    "refused": "denied",
    "ask": "denied",
    "timeout": "timeout",
    "unknown": "outcome_unknown",
}


_STATUSES: Final[Mapping[ErrorKind, Literal["tool_error", "timeout"]]] = {
    "tool_error": "tool_error",
    "timeout": "timeout",
}


def program_of_call(tool_id: str) -> str:
    """Return the program that a direct call stands for."""
    return f"return await mcp.call({json.dumps(tool_id)}, args);"


def begun_call(
    scope: Scope,
    principal: str,
    tool_id: str,
    args: JsonObject,
    *,
    key: str,
    at: datetime,
    timeout_s: float,
    patience: timedelta,
    policy: Policy,
    traceparent: str | None,
) -> Workflow:
    """Build the workflow of a direct call, which begins at once; `key` is its own."""
    workflow_id = ids.workflow_id(scope, principal, key)
    requested = ExecutionRequested(
        scope=scope,
        event_id=ids.effect_id(workflow_id, "execution-requested"),
        workflow_id=workflow_id,
        principal=principal,
        code=program_of_call(tool_id),
        args=args,
        policy=policy,
        direct_tool=tool_id,
        requested_at=at,
    )
    return _running(
        requested, key, timeout_s, at + timedelta(seconds=timeout_s) + patience, traceparent
    )


def call_of(workflow: Workflow, tool_id: str) -> CallTool:
    """Build the one call of a direct call's workflow; it was never asked for before."""
    requested = workflow.requested
    return CallTool(
        scope=workflow.scope,
        workflow_id=workflow.workflow_id,
        node_id=NODE,
        occurrence=0,
        tool=tool_id,
        args=requested.args,
        grant_digest="",
        timeout_s=workflow.timeout_s,
        asked_first_at=requested.requested_at,
    )


def call_ended(workflow: Workflow, call: CallTool, outcome: ToolOutcome, at: datetime) -> CallEnded:
    """Build the end of a direct call from its outcome at the time `at`."""
    workflow_id, requested = workflow.workflow_id, workflow.requested
    started_at = requested.requested_at.timestamp() * 1000
    duration_ms = max(0.0, at.timestamp() * 1000 - started_at)
    error, root = _error_of(call, outcome), ids.root_trace_id(workflow_id)
    event_id = ids.effect_id(workflow_id, "call-ended")
    task = TaskResult(
        node_id=call.node_id,
        occurrence=call.occurrence,
        tool=call.tool,
        args=call.args,
        success=error is None,
        result=outcome.result,
        error=error,
        trace_id=call.idempotency_key,
        parent_trace_id=root,
        started_at=started_at,
        duration_ms=duration_ms,
    )
    run = RunFinished(
        scope=workflow.scope,
        event_id=event_id,
        workflow_id=workflow_id,
        principal=requested.principal,
        capability=CapabilityIdentity(
            capability_id=ids.scoped_id(workflow.scope, "direct-call", call.tool),
            code_hash=hashlib.sha256(requested.code.encode()).hexdigest(),
        ),
        success=error is None,
        result=outcome.result,
        error=error,
        executed_path=(call.node_id,),
        task_results=(task,),
        trace_id=root,
        started_at=started_at,
        duration_ms=duration_ms,
    )
    return CallEnded(
        scope=workflow.scope,
        event_id=event_id,
        workflow_id=workflow_id,
        requested=requested,
        run=run,
        idempotency_key=workflow.idempotency_key,
        timeout_s=workflow.timeout_s,
        traceparent=workflow.traceparent,
    )


def workflow_of_call(ended: CallEnded) -> Workflow:
    """Build the workflow of a direct call as it was before its end."""
    key, at = ended.idempotency_key, ended.requested.requested_at
    return _running(ended.requested, key, ended.timeout_s, at, ended.traceparent)


def ledger_entry(ended: CallEnded, owner: UUID) -> tuple[CallTool, Entry] | None:
    """Return a call that ended, and its entry in the ledger; None where nothing was called."""
    workflow, error = workflow_of_call(ended), ended.run.error
    tool = workflow.requested.direct_tool
    if tool is None or (error is not None and error.kind == "denied"):
        return None
    call = call_of(workflow, tool)
    outcome = ToolOutcome(status="ok", result=ended.run.result)
    if error is not None:
        outcome = ToolOutcome(status=_STATUSES.get(error.kind, "unknown"), message=error.message)
    deadline = workflow.requested.requested_at + timedelta(seconds=ended.timeout_s)
    return call, Entry(fingerprint(call), owner, deadline, outcome)


def is_open_call(workflow: Workflow) -> bool:
    """Whether this is a direct call that is under way."""
    return workflow.state == "running" and workflow.requested.direct_tool is not None


def lost_call(workflow: Workflow) -> WorkflowError:
    """The gateway that made the call died before its end."""
    tool = workflow.requested.direct_tool
    return WorkflowError(
        kind="outcome_unknown",
        message=f"the gateway that called {tool} stopped before the outcome was stored: check what "
        "the call did before you make it again",
        node_id=NODE,
        tool=tool,
    )


def _running(
    requested: ExecutionRequested,
    key: str,
    timeout_s: float,
    due_at: datetime,
    traceparent: str | None,
) -> Workflow:
    return Workflow(
        requested=requested,
        idempotency_key=key,
        request_hash="",
        timeout_s=timeout_s,
        due_at=due_at,
        traceparent=traceparent,
        state="running",
    )


def _error_of(call: CallTool, outcome: ToolOutcome) -> WorkflowError | None:
    if outcome.status == "ok":
        return None
    return WorkflowError(
        kind=_KINDS[outcome.status],
        message=outcome.message or outcome.status,
        node_id=call.node_id,
        tool=call.tool,
        code=outcome.code,
    )
