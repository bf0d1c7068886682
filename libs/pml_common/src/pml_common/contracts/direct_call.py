"""Contract of the end of a direct call: of a tool that a caller called by its name."""

from uuid import UUID

from pml_common.contracts.base import Event
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import ExecutionRequested


class CallEnded(Event):
    """A direct call, which the gateway made itself, ended.

    `requested` is the call as the program that it stands for. `run` has the form of the run of such
    a program: its one task, and no journal; its capability is derived from the tool, and nothing is
    learned of it. `idempotency_key`, `timeout_s` and `traceparent` are those of its workflow.
    """

    workflow_id: UUID
    requested: ExecutionRequested
    run: RunFinished
    idempotency_key: str
    timeout_s: float
    traceparent: str | None = None
