"""A workflow as it stands."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.grant import Grant
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.shown_calls import ShownToApprover
from pml_gateway.domain.workflow.rules import Rules

State = Literal["requested", "awaiting_approval", "running", "succeeded", "failed"]
ApprovalOutcome = Literal["approved", "denied", "expired"]


@dataclass(frozen=True)
class Approval:
    """A question to a person, and the answer once there is one. `parked` is what the run waits for
    since it stands at a call; without it the question is whether the program may run at all.
    `shown` is what the answer names."""

    approval_id: UUID
    requested_at: datetime
    expires_at: datetime
    outcome: ApprovalOutcome | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    reason: str | None = None
    parked: WorkflowParked | None = None
    shown: ShownToApprover | None = None


@dataclass(frozen=True)
class Workflow:
    """One execution.

    `request_hash` tells whether a repeated request asks the same; `grant` is what its run goes by;
    `error` is why it failed without a run, or why its run is being cancelled; at `due_at` the next
    thing should have happened.
    """

    requested: ExecutionRequested
    idempotency_key: str
    request_hash: str
    timeout_s: float
    due_at: datetime | None
    traceparent: str | None = None
    state: State = "requested"
    analysis: ExecutionAnalyzed | None = None
    approval: Approval | None = None
    grant: Grant | None = None
    run: RunFinished | None = None
    error: WorkflowError | None = None
    finished_at: datetime | None = None

    @property
    def scope(self) -> Scope:
        """Whose it is."""
        return self.requested.scope

    @property
    def workflow_id(self) -> UUID:
        """Its id."""
        return self.requested.workflow_id

    @property
    def parked(self) -> WorkflowParked | None:
        """Where its run stood, or stands, waiting for a person."""
        return self.approval.parked if self.approval else None

    @property
    def run_command_id(self) -> UUID:
        """The id of the command that its run goes by now; a new one after each approval."""
        cause = self.approval.approval_id if self.approval else self.requested.event_id
        return ids.effect_id(cause, "run-workflow")


def waits_since(workflow: Workflow) -> datetime:
    """When it was handed to the service that has to act on it now."""
    approval = workflow.approval if workflow.state == "running" else None
    decided_at = approval.decided_at if approval else None
    return decided_at or workflow.requested.requested_at


def hopeless_at(workflow: Workflow, rules: Rules, without_bus: timedelta) -> datetime:
    """When the first grant of a run has expired, or what should be analysed has waited as long. The
    time `without_bus` is added, at most as much again as grants outlive their runs, for an executor
    to tell how a run ended whose grant expired meanwhile."""
    time = timedelta(seconds=workflow.timeout_s if workflow.state == "running" else 0.0)
    more = min(without_bus, rules.grant_slack)
    return waits_since(workflow) + time + rules.grant_slack + more
