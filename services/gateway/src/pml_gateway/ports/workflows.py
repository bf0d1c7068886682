"""Workflows, their analyses, and the messages that they cause."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Event, Message
from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.list_cursors import After
from pml_gateway.domain.api.principals import PrincipalDeletion
from pml_gateway.domain.api.views import ApprovalPage, WorkflowPage
from pml_gateway.domain.workflow.workflow import Step, Workflow


@dataclass(frozen=True)
class Outgoing:
    """A message of the outbox, with the `traceparent` of the trace that it belongs to."""

    message: Message
    traceparent: str | None = None


@dataclass(frozen=True)
class Taken:
    """A step caused by a message: its effects and the workflow after it; no workflow where the
    message was handled before."""

    effects: Sequence[Message]
    workflow: Workflow | None


class Analyses(Protocol):
    """Analyses programs before their requests are stored."""

    async def of(
        self, requested: ExecutionRequested
    ) -> ExecutionAnalyzed | AnalysisRejected | None:
        """Return the analysis of exactly this request's program; None where the analyzer gives
        none in time."""
        ...


class WorkflowStore(Protocol):
    """Stores workflows and their approvals. Every method may raise StorageUnavailable."""

    async def accept(
        self, workflow: Workflow, effects: Sequence[Message], join_at: datetime | None = None
    ) -> Workflow | None:
        """Store a new workflow as it is after its first step, and that step's messages in the
        outbox, and return None; where its key is taken, store nothing and return the workflow that
        has it. So also, with `join_at`, where the same call has a workflow that may be joined at
        this time: of calls that come together, to any process, one is stored."""
        ...

    async def add(self, workflows: Sequence[Workflow]) -> Set[tuple[Scope, UUID]]:
        """Store workflows that were accepted elsewhere; return the keys of those that are new."""
        ...

    async def step_once(
        self, cause: Event, consumer: str, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Taken | None:
        """Take the step that a message causes, once for all its deliveries. None: there is no such
        workflow."""
        ...

    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        """Take a step that no message causes: store the workflow, and its effects in the outbox.
        None: there is no such workflow."""
        ...

    async def end(self, runs: Sequence[RunFinished]) -> Sequence[Workflow]:
        """End the workflows of these runs, together, and return them; those that there are not are
        missing. A repetition changes nothing."""
        ...

    def latest(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """Return a running workflow as this process stored it last, if it is at hand."""
        ...

    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """Return a workflow in its current state."""
        ...

    async def joinable(self, scope: Scope, call_digest: str) -> Workflow | None:
        """Return the latest workflow of a call that waits for a person, or was approved and is not
        delivered."""
        ...

    async def deliver(self, scope: Scope, workflow_id: UUID) -> None:
        """Note that a workflow's caller has got its end: no call joins it any more."""
        ...

    async def page(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> WorkflowPage:
        """List workflows, newest first."""
        ...

    async def waiting(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> ApprovalPage:
        """List open approvals, the first to expire first."""
        ...

    async def forget(self, ended_before: datetime, limit: int) -> int:
        """Delete workflows of all scopes that ended before this time, the earliest first, and
        return how many. Those with an approval stay, as the record of who allowed what, and those
        whose result is cached."""
        ...

    async def due(self, scope: Scope, now: datetime, limit: int) -> Sequence[UUID]:
        """List workflows whose next step is overdue."""
        ...


class LiveWorkflowStore(WorkflowStore, Protocol):
    """A store that knows what the bus has of a workflow before it is stored."""

    async def accept_run(self, workflow: Workflow, accepted: WorkflowAccepted) -> Workflow | None:
        """Accept a workflow that runs at once by publishing this, and return None: it is stored
        later. Where its key is taken, return the workflow that has it. Raises BusError, after which
        it may be accepted nevertheless."""
        ...

    async def add_accepted(self, accepted: Sequence[WorkflowAccepted]) -> None:
        """Store accepted workflows; a repetition changes nothing."""
        ...

    def begin(self, workflow: Workflow) -> None:
        """Remember a direct call that runs until it is stored."""
        ...

    async def end_calls(self, ended: Sequence[CallEnded]) -> Sequence[Workflow]:
        """Store workflows of direct calls as they ended, and return them; a repetition changes
        nothing."""
        ...

    async def settle(self, scope: Scope, workflow_id: UUID) -> None:
        """Store now what is known of a workflow."""
        ...

    async def is_held(self, scope: Scope, workflow_id: UUID) -> bool:
        """Whether the bus holds a message on which the workflow's run begins or goes on: its
        executor has not acknowledged it. Raises BusError."""
        ...

    def hear(self, before: Workflow, run: RunFinished) -> Workflow:
        """Remember the end of a run until it is stored, and return the workflow after it."""
        ...


class Outbox(Protocol):
    """Stores messages until they are published. Every method may raise StorageUnavailable."""

    async def claim(self, limit: int) -> Sequence[Outgoing]:
        """Return overdue messages of all scopes, and for a while return them to no other caller.
        Unreadable messages are set aside."""
        ...

    async def drop(self, message_ids: Sequence[UUID]) -> None:
        """Delete published messages."""
        ...


class Relay(Protocol):
    """Publishes messages of the outbox."""

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Publish messages that were just stored; those that fail now are published later."""
        ...


class PrincipalDeletionRecord(Protocol):
    """Records who had the data of which principal deleted. Every method may raise
    StorageUnavailable."""

    async def add(self, scope: Scope, deletion: PrincipalDeletion) -> None:
        """Record a deletion. Idempotent."""
        ...

    async def newest(self, scope: Scope, limit: int) -> Sequence[PrincipalDeletion]:
        """Return the last deletions of a scope, newest first."""
        ...
