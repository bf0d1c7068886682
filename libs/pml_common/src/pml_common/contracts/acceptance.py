"""Contract of the acceptance of a workflow whose run begins at once."""

from uuid import UUID

from pydantic import AwareDatetime

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Event
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ExecutionRequested


class WorkflowAccepted(Event):
    """A workflow was accepted, and its run begins: the executor carries out `run`, the gateway
    stores the rest.

    `analysis` is without what `run` has, too: the instrumented program and its capabilities.
    `idempotency_key` and `request_hash` identify the request, `due_at` is when the workflow's next
    event is expected, `traceparent` the context of the request's trace; calls with the same
    `call_digest` may join the workflow where it comes to need a person.
    """

    workflow_id: UUID
    requested: ExecutionRequested
    analysis: ExecutionAnalyzed
    run: RunWorkflow
    idempotency_key: str
    request_hash: str
    due_at: AwareDatetime
    traceparent: str | None = None
    call_digest: str | None = None
