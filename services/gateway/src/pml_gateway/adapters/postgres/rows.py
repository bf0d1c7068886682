"""Converts rows of schema `gateway` to values and back."""

from typing import TypeVar
from uuid import UUID

import asyncpg
from pydantic import JsonValue, TypeAdapter, ValidationError

from pml_common.contracts import catalog
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Contract, Message
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.fault_words import faults_of
from pml_common.contracts.gateway import DecidedThrough, ExecutionRequested
from pml_common.contracts.grant import Grant
from pml_common.storage.columns import scope_columns
from pml_gateway.domain.api.responses import STATUS
from pml_gateway.domain.api.shown_calls import ShownToApprover
from pml_gateway.domain.api.views import WorkflowSummary
from pml_gateway.domain.workflow.workflow import Approval, Workflow

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
_MODELS = {entry.name: entry.model for entry in catalog.MESSAGES}

C = TypeVar("C", bound=Contract)


class UnreadableRow(Exception):
    """A row has content that this version cannot read."""


def from_json(model: type[C], text: str | None) -> C | None:
    """Parse a json column; None if it is null."""
    return None if text is None else model.model_validate_json(text)


def to_json(value: Contract | None) -> str | None:
    """Return the content of a json column; None is null."""
    return None if value is None else value.model_dump_json()


def workflow_of(row: asyncpg.Record, approval: Approval | None) -> Workflow:
    """Build a workflow from a row of `workflow` and its approval."""
    run, error = from_json(RunFinished, row["run"]), from_json(WorkflowError, row["error"])
    if run is not None:
        result = _JSON.validate_json(row["result"])
        run = run.model_copy(update={"result": result, "error": error})
    return Workflow(
        requested=ExecutionRequested.model_validate_json(row["requested"]),
        idempotency_key=row["idempotency_key"],
        request_hash=row["request_hash"],
        timeout_s=row["timeout_s"],
        due_at=row["due_at"],
        traceparent=row["traceparent"],
        call_digest=row["call_digest"],
        state=row["state"],
        analysis=from_json(ExecutionAnalyzed, row["analysis"]),
        approval=approval,
        grant=from_json(Grant, row["granted"]),
        run=run,
        error=error if run is None else None,
        finished_at=row["finished_at"],
        deleted_at=row["deleted_at"],
    )


def workflow_columns(before: Workflow, after: Workflow) -> tuple[object, ...]:
    """Return the key of a workflow and the columns that a step may change; an analysis or a grant
    that is stored already is null."""
    analysis, run = after.analysis, after.run
    return (
        *scope_columns(after.scope),
        after.workflow_id,
        after.state,
        None if analysis is before.analysis else to_json(analysis),
        analysis.capability.capability_id if analysis else None,
        after.approval.approval_id if after.approval else None,
        run.model_dump_json(exclude={"result", "error"}) if run else None,
        _JSON.dump_json(run.result).decode() if run else None,
        to_json(run.error if run else after.error),
        after.due_at,
        after.finished_at,
        None if after.grant is before.grant else to_json(after.grant),
    )


def end_columns(after: Workflow, revision: int) -> tuple[object, ...]:
    """Return the columns of `end-workflows`: what the end of its run changes of a workflow."""
    columns = workflow_columns(after, after)
    (org, project, workflow_id, state), (run, result, error, _, at) = columns[:4], columns[7:12]
    return org, project, workflow_id, revision, state, run, result, error, at


def erased_columns(before: Workflow, after: Workflow) -> tuple[object, ...]:
    """Return the columns of `erase-workflow`: the key, what is left of the request, the time, and
    the messages whose handling stated what was to run."""
    causes = (before.analysis, before.parked)
    handled = [cause.event_id for cause in causes if cause is not None]
    key = scope_columns(after.scope)
    return *key, after.workflow_id, after.requested.model_dump_json(), after.deleted_at, handled


def workflow_now(row: asyncpg.Record) -> Workflow:
    """Build a workflow from a row of the view `workflow_now`."""
    asked = row["approval_id"] is not None
    return workflow_of(row, approval_of(row["approval_id"], row) if asked else None)


def approval_of(approval_id: UUID, row: asyncpg.Record) -> Approval:
    """Build an approval from the columns of its row."""
    return Approval(
        approval_id=approval_id,
        requested_at=row["asked_at"],
        expires_at=row["expires_at"],
        outcome=row["outcome"],
        decided_by=row["decided_by"],
        decided_at=row["decided_at"],
        reason=row["reason"],
        parked=from_json(WorkflowParked, row["parked"]),
        shown=_shown_of(row),
        decided_through=from_json(DecidedThrough, row["decided_through"]),
    )


def _shown_of(row: asyncpg.Record) -> ShownToApprover | None:
    digest, whole = row["shown_digest"], row["shown_whole"]
    return None if digest is None else ShownToApprover(digest=digest, whole=whole)


def summary_of(row: asyncpg.Record) -> WorkflowSummary:
    """Build a summary from a row of `list-workflows`."""
    requested = ExecutionRequested.model_validate_json(row["requested"])
    return WorkflowSummary(
        workflow_id=row["workflow_id"],
        status=STATUS[row["state"]],
        intent=requested.intent,
        name=requested.name,
        principal=requested.principal,
        capability_id=row["capability_id"],
        error=from_json(WorkflowError, row["error"]),
        dry_run=requested.dry_run is not None,
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        deleted_at=row["deleted_at"],
    )


def message_of(row: asyncpg.Record) -> Message:
    """Return the message in a row of `outbox`. Raises UnreadableRow."""
    model = _MODELS.get(row["message"])
    if model is None:
        raise UnreadableRow(f"there is no message type {row['message']}")
    try:
        return model.model_validate_json(row["content"])
    except ValidationError as error:
        raise UnreadableRow(f"it is no {row['message']}: {faults_of(error)[0]}") from error


def outgoing_columns(message: Message) -> tuple[object, ...]:
    """Return the columns of a message in `outbox`, from its id to its content."""
    name = catalog.type_of(message).name
    return (message.message_id, *scope_columns(message.scope), name, message.model_dump_json())
