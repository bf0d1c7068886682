"""The state of a workflow, and the rules that apply to all of them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.gateway import DecidedThrough, ExecutionRequested
from pml_common.contracts.grant import Grant
from pml_common.contracts.scope import Scope
from pml_common.signing import SigningKey
from pml_gateway.domain.api.shown_calls import ShownToApprover

State = Literal["requested", "awaiting_approval", "running", "succeeded", "failed"]
ApprovalOutcome = Literal["approved", "denied", "expired"]


@dataclass(frozen=True)
class Rules:
    """Rules for every workflow of a gateway.

    Grants are signed with `key`. They outlive the time that a run may take by `grant_slack`, which
    covers queues and crashes. A workflow that makes no progress for `patience` longer than it
    should is requested again, until `grant_slack` has passed: then it fails.
    """

    key: SigningKey
    approval_ttl: timedelta = timedelta(hours=1)
    grant_slack: timedelta = timedelta(hours=1)
    patience: timedelta = timedelta(minutes=1)


@dataclass(frozen=True)
class Approval:
    """A request for approval, with its decision once there is one. `parked` holds the calls of a
    parked run; without it the question is whether the program may run at all. `shown` is what the
    decision names, `decided_through` its way, if it came without the approver's key."""

    approval_id: UUID
    requested_at: datetime
    expires_at: datetime
    outcome: ApprovalOutcome | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    reason: str | None = None
    parked: WorkflowParked | None = None
    shown: ShownToApprover | None = None
    decided_through: DecidedThrough | None = None


@dataclass(frozen=True)
class Workflow:
    """One execution.

    `request_hash` tells whether a repeated request is the same; `grant` is that of its run; `error`
    is why it failed without a run, or why its run is being cancelled; by `due_at` the next event is
    expected. Calls with the same `call_digest` may join it; None: none may. At `deleted_at` its
    caller deleted its data: only its state, its times and who decided what are left.
    """

    requested: ExecutionRequested
    idempotency_key: str
    request_hash: str
    timeout_s: float
    due_at: datetime | None
    traceparent: str | None = None
    call_digest: str | None = None
    state: State = "requested"
    analysis: ExecutionAnalyzed | None = None
    approval: Approval | None = None
    grant: Grant | None = None
    run: RunFinished | None = None
    error: WorkflowError | None = None
    finished_at: datetime | None = None
    deleted_at: datetime | None = None

    @property
    def scope(self) -> Scope:
        """Its scope."""
        return self.requested.scope

    @property
    def workflow_id(self) -> UUID:
        """Its id."""
        return self.requested.workflow_id

    @property
    def proves_its_program(self) -> bool:
        """Whether it has succeeded with a result of its program's: then that may get a name, and
        the result may be returned again."""
        return self.state == "succeeded" and not (self.run is not None and self.run.void)

    @property
    def parked(self) -> WorkflowParked | None:
        """The calls at which its run was or is parked."""
        return self.approval.parked if self.approval else None

    @property
    def run_command_id(self) -> UUID:
        """The id of its current run command; a new one after each approval."""
        cause = self.approval.approval_id if self.approval else self.requested.event_id
        return ids.effect_id(cause, "run-workflow")


def waiting_since(workflow: Workflow) -> datetime:
    """Return when it was handed to the service that has to act on it now."""
    approval = workflow.approval if workflow.state == "running" else None
    decided_at = approval.decided_at if approval else None
    return decided_at or workflow.requested.requested_at


def abandoned_at(workflow: Workflow, rules: Rules, without_bus: timedelta) -> datetime:
    """Return when the workflow is given up: its run's first grant has expired, or its analysis is
    outstanding for as long. The time `without_bus` is added, at most another `grant_slack`, for an
    executor to report the end of a run whose grant expired meanwhile."""
    time = timedelta(seconds=workflow.timeout_s if workflow.state == "running" else 0.0)
    more = min(without_bus, rules.grant_slack)
    return waiting_since(workflow) + time + rules.grant_slack + more
