"""Workflows and the outbox in memory; pass the same contract suite as the Postgres stores."""

from collections.abc import Callable, Sequence, Set
from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.base import Event, Message
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.list_cursors import After
from pml_gateway.domain.api.views import (
    ApprovalPage,
    WorkflowPage,
    approvals_of,
    summary_of,
    workflows_of,
)
from pml_gateway.domain.workflow.joining import is_joinable
from pml_gateway.domain.workflow.workflow import Step, Workflow, run_ended
from pml_gateway.ports import Outbox, Outgoing, Taken, WorkflowStore


class MemoryOutbox(Outbox):
    """Messages are due as soon as they are put."""

    def __init__(self) -> None:
        self.kept: dict[UUID, Outgoing] = {}
        self._claimed: set[UUID] = set()

    def put(self, message: Message, traceparent: str | None) -> None:
        """Add a message; `traceparent` is its trace context."""
        self.kept[message.message_id] = Outgoing(message, traceparent)
        self._claimed.discard(message.message_id)

    @override
    async def claim(self, limit: int) -> Sequence[Outgoing]:
        due = [key for key in self.kept if key not in self._claimed][:limit]
        self._claimed.update(due)
        return [self.kept[key] for key in due]

    @override
    async def drop(self, message_ids: Sequence[UUID]) -> None:
        for key in message_ids:
            self.kept.pop(key, None)


class MemoryWorkflowStore(WorkflowStore):
    def __init__(self) -> None:
        self.outbox = MemoryOutbox()
        self._delivered: set[tuple[Scope, UUID]] = set()
        self.kept: dict[tuple[Scope, UUID], Workflow] = {}
        self._handled: dict[tuple[UUID, str], Sequence[Message]] = {}
        self.erasing: list[Callable[[Scope, UUID], None]] = []
        """Called when a workflow's data is deleted."""

    @override
    async def accept(
        self, workflow: Workflow, effects: Sequence[Message], join_at: datetime | None = None
    ) -> Workflow | None:
        if join_at is not None and workflow.call_digest is not None:
            earlier = await self.joinable(workflow.scope, workflow.call_digest)
            if earlier is not None and is_joinable(earlier, join_at):
                return earlier
        known = self.kept.setdefault((workflow.scope, workflow.workflow_id), workflow)
        if known is not workflow:
            return known
        for message in effects:
            self.outbox.put(message, workflow.traceparent)
        return None

    @override
    async def add(self, workflows: Sequence[Workflow]) -> Set[tuple[Scope, UUID]]:
        keys = {(each.scope, each.workflow_id): each for each in workflows}
        added = keys.keys() - self.kept.keys()
        self.kept |= {key: keys[key] for key in added}
        return added

    @override
    async def step_once(
        self, cause: Event, consumer: str, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Taken | None:
        before = self.kept.get((cause.scope, workflow_id))
        if before is None:
            return None
        handled = self._handled.get((cause.event_id, consumer))
        if handled is not None:
            return Taken(handled, None)
        after, effects = step(before)
        if after is not before:
            self.kept[cause.scope, workflow_id] = after
            self._handled[cause.event_id, consumer] = effects
        return Taken(effects, after)

    @override
    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        before = self.kept.get((scope, workflow_id))
        if before is None:
            return None
        after, effects = step(before)
        self.kept[scope, workflow_id] = after
        if after.deleted_at is not None:
            for erase in self.erasing:
                erase(scope, workflow_id)
        for message in effects:
            self.outbox.put(message, after.traceparent)
        return after, effects

    @override
    async def end(self, runs: Sequence[RunFinished]) -> Sequence[Workflow]:
        ended = list[Workflow]()
        for run in runs:
            before = self.kept.get((run.scope, run.workflow_id))
            if before is not None:
                self.kept[run.scope, run.workflow_id] = after = run_ended(before, run)
                ended.append(after)
        return ended

    @override
    def latest(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        return self.kept.get((scope, workflow_id))

    @override
    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        return self.kept.get((scope, workflow_id))

    @override
    async def joinable(self, scope: Scope, call_digest: str) -> Workflow | None:
        found = [
            each
            for (owner, workflow_id), each in self.kept.items()
            if owner == scope
            and each.call_digest == call_digest
            and (owner, workflow_id) not in self._delivered
            and each.approval is not None
            and (each.state == "awaiting_approval" or each.approval.outcome == "approved")
        ]
        return max(found, key=lambda each: each.requested.requested_at, default=None)

    @override
    async def deliver(self, scope: Scope, workflow_id: UUID) -> None:
        self._delivered.add((scope, workflow_id))

    @override
    async def page(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> WorkflowPage:
        own = [workflow for (owner, _), workflow in self.kept.items() if owner == scope]
        own.sort(key=lambda workflow: workflow.workflow_id)
        own.sort(key=lambda workflow: workflow.requested.requested_at, reverse=True)
        later = [each for each in own if after is None or _is_after(each, after)]
        listed = [summary_of(each) for each in later[offset : offset + limit + 1]]
        return workflows_of(listed, len(own), limit)

    @override
    async def waiting(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> ApprovalPage:
        found = [
            (workflow.due_at, workflow.workflow_id, workflow)
            for (owner, _), workflow in self.kept.items()
            if owner == scope and workflow.state == "awaiting_approval" and workflow.due_at
        ]
        found.sort(key=lambda one: one[:2])
        later = [
            workflow
            for *place, workflow in found
            if after is None or place > [after.at, after.workflow_id]
        ]
        return approvals_of(later[offset : offset + limit + 1], len(found), limit)

    @override
    async def forget(self, ended_before: datetime, limit: int) -> int:
        found = [
            (each.finished_at, key)
            for key, each in self.kept.items()
            if each.finished_at and each.finished_at < ended_before and each.approval is None
        ]
        old = sorted(found, key=lambda one: one[0])[:limit]
        for _, key in old:
            del self.kept[key]
        return len(old)

    @override
    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Scope, UUID]]:
        found = [
            (workflow.due_at, key)
            for key, workflow in self.kept.items()
            if workflow.due_at is not None and workflow.due_at <= now
        ]
        found.sort(key=lambda one: one[0])
        return [key for _, key in found[:limit]]


def _is_after(workflow: Workflow, after: After) -> bool:
    at = workflow.requested.requested_at
    return at < after.at or (at == after.at and workflow.workflow_id > after.workflow_id)
