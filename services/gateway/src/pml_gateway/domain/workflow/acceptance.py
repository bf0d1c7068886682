"""Turns a request into a workflow."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_common.contracts.source import CapabilitySource, FromDag, FromTool
from pml_gateway.domain.api.api import ExecuteRequest, dry_run_of, request_hash, validated_layers
from pml_gateway.domain.workflow.joining import call_digest
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.domain.workflow.workflow_state import Rules


@dataclass(frozen=True)
class Terms:
    """Settings of executions; times in seconds."""

    default_timeout_s: float = 60.0
    max_timeout_s: float = 3600.0
    answer_margin_s: float = 5.0
    """Added to the program's timeout: the longest wait of a caller."""
    poll_every_s: float = 5.0
    """Interval at which a waiting caller reads its workflow: notifications can be lost with a
    connection."""


@dataclass(frozen=True)
class Program:
    """A program to run. `known_as` are the names of the capability that it is, `called_as` the one
    that the call counts under. `source` is what is known of a program that its request does not
    bring."""

    code: str
    known_as: tuple[str, ...] = ()
    source: CapabilitySource | None = None
    called_as: str | None = None


@dataclass(frozen=True)
class IncomingRequest:
    """A request for a program, with its context; `as_sent` is what the caller sent, where that
    named no program."""

    scope: Scope
    principal: str
    request: ExecuteRequest
    program: Program
    workflow_id: UUID
    idempotency_key: str
    at: datetime
    policy: Policy
    traceparent: str | None = None
    as_sent: ExecuteRequest | None = None


def accepted(incoming: IncomingRequest, terms: Terms, rules: Rules) -> Workflow:
    """Build the workflow of a request; the same request under the same key gives the same one."""
    request, program = incoming.request, incoming.program
    workflow_id = incoming.workflow_id
    requested = ExecutionRequested(
        scope=incoming.scope,
        event_id=ids.effect_id(workflow_id, "execution-requested"),
        workflow_id=workflow_id,
        principal=incoming.principal,
        code=program.code,
        intent=request.intent,
        name=request.name,
        update=request.update,
        version_tag=request.version_tag,
        change_summary=request.change_summary or "",
        known_as=program.known_as,
        args=request.arguments,
        policy=incoming.policy,
        dry_run=dry_run_of(request),
        layers=validated_layers(request),
        source=_source_of(request) or program.source,
        called_as=program.called_as,
        discovery_id=request.discovery_id,
        submitted=request.code is not None,
        requested_at=incoming.at,
    )
    return Workflow(
        requested=requested,
        idempotency_key=incoming.idempotency_key,
        request_hash=request_hash(incoming.as_sent or request),
        timeout_s=request.timeout or terms.default_timeout_s,
        due_at=incoming.at + rules.patience,
        traceparent=incoming.traceparent,
        call_digest=call_digest(requested) if request.idempotency_key is None else None,
    )


def _source_of(request: ExecuteRequest) -> CapabilitySource | None:
    """Return the DAG or the tool that the request was sent with, in its own words."""
    if request.dag is not None:
        return FromDag(dag=request.dag.model_dump(mode="json", exclude_unset=True))
    if request.tool is not None:
        return FromTool(tool_id=request.tool.tool_id, default_args=request.tool.default_args)
    return None
