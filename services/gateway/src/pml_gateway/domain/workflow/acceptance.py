"""A request becomes a workflow."""

from dataclasses import dataclass
from datetime import datetime

from pml_common.contracts import ids
from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.api import ExecuteRequest, dry_run_of, request_hash, validated_layers
from pml_gateway.domain.workflow.rules import Rules
from pml_gateway.domain.workflow.workflow import Workflow


@dataclass(frozen=True)
class Terms:
    """What the gateway's settings say about executions; times in seconds."""

    default_timeout_s: float = 60.0
    max_timeout_s: float = 3600.0
    answer_margin_s: float = 5.0
    """How much longer than the program a caller waits at most."""
    look_every_s: float = 5.0
    """How often a workflow is looked at without news: those can be lost with a connection."""


@dataclass(frozen=True)
class Asked:
    """A request with all that comes with it: who asks, when, under which key and policy, as part
    of which trace; `code` is what shall run, `known_as` the names of the capability that it is."""

    scope: Scope
    principal: str
    request: ExecuteRequest
    code: str
    idempotency_key: str
    at: datetime
    policy: Policy
    known_as: tuple[str, ...] = ()
    traceparent: str | None = None


def accepted(asked: Asked, terms: Terms, rules: Rules) -> Workflow:
    """The workflow that a request asks for; the same request under the same key is the same."""
    request = asked.request
    workflow_id = ids.workflow_id(asked.scope, asked.idempotency_key)
    requested = ExecutionRequested(
        scope=asked.scope,
        event_id=ids.effect_id(workflow_id, "execution-requested"),
        workflow_id=workflow_id,
        principal=asked.principal,
        code=asked.code,
        intent=request.intent,
        name=request.name,
        known_as=asked.known_as,
        args=request.arguments,
        policy=asked.policy,
        dry_run=dry_run_of(request),
        layers=validated_layers(request),
        requested_at=asked.at,
    )
    return Workflow(
        requested=requested,
        idempotency_key=asked.idempotency_key,
        request_hash=request_hash(request),
        timeout_s=request.timeout or terms.default_timeout_s,
        due_at=asked.at + rules.patience,
        traceparent=asked.traceparent,
    )
