"""Workflows and the outbox in memory; the twin of the Postgres stores, under the same suite."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from pml_common.contracts.base import Message
from pml_common.contracts.scope import Scope
from pml_common.storage.memory import MemoryInbox, MemoryOnce
from pml_gateway.domain.views import ApprovalPage, WorkflowPage, approvals_of, summary_of
from pml_gateway.domain.workflow import Step, Workflow
from pml_gateway.ports import Outgoing


class MemoryOutbox:
    """See `ports.Outbox`; what was put is due at once."""

    def __init__(self) -> None:
        self.kept: dict[UUID, Outgoing] = {}
        self._claimed: set[UUID] = set()

    def put(self, message: Message, traceparent: str | None) -> None:
        """Keep a message with the change that calls for it."""
        self.kept[message.message_id] = Outgoing(message, traceparent)
        self._claimed.discard(message.message_id)

    async def claim(self, limit: int) -> Sequence[Outgoing]:
        """See `ports.Outbox`."""
        due = [key for key in self.kept if key not in self._claimed][:limit]
        self._claimed.update(due)
        return [self.kept[key] for key in due]

    async def drop(self, message_ids: Sequence[UUID]) -> None:
        """See `ports.Outbox`."""
        for key in message_ids:
            self.kept.pop(key, None)


class MemoryWorkflowStore:
    """See `ports.WorkflowStore`."""

    def __init__(self) -> None:
        self.outbox = MemoryOutbox()
        self.kept: dict[tuple[Scope, UUID], Workflow] = {}
        self.inbox = MemoryInbox()
        self._lock = asyncio.Lock()

    async def accept(self, workflow: Workflow) -> Workflow | None:
        """See `ports.WorkflowStore`."""
        known = self.kept.setdefault((workflow.scope, workflow.workflow_id), workflow)
        if known is not workflow:
            return known
        self.outbox.put(workflow.requested, workflow.traceparent)
        return None

    @asynccontextmanager
    async def once(self, message_id: UUID, consumer: str) -> AsyncGenerator["MemoryHandling"]:
        """See `ports.WorkflowStore`."""
        async with self._lock, self.inbox.once(message_id, consumer) as handling:
            yield MemoryHandling(self, handling)

    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        """See `ports.WorkflowStore`."""
        async with self._lock:
            before = self.kept.get((scope, workflow_id))
            if before is None:
                return None
            after, effects = step(before)
            self.kept[scope, workflow_id] = after
            for message in effects:
                self.outbox.put(message, after.traceparent)
            return after, effects

    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """See `ports.WorkflowStore`."""
        return self.kept.get((scope, workflow_id))

    async def page(self, scope: Scope, limit: int, offset: int) -> WorkflowPage:
        """See `ports.WorkflowStore`."""
        own = [workflow for (owner, _), workflow in self.kept.items() if owner == scope]
        own.sort(key=lambda workflow: workflow.workflow_id)
        own.sort(key=lambda workflow: workflow.requested.requested_at, reverse=True)
        listed = tuple(summary_of(workflow) for workflow in own[offset : offset + limit])
        return WorkflowPage(workflows=listed, total=len(own))

    async def waiting(self, scope: Scope, limit: int, offset: int) -> ApprovalPage:
        """See `ports.WorkflowStore`."""
        found = [
            (workflow.due_at, workflow.workflow_id, workflow)
            for (owner, _), workflow in self.kept.items()
            if owner == scope and workflow.state == "awaiting_approval" and workflow.due_at
        ]
        found.sort(key=lambda one: one[:2])
        page = [workflow for _, _, workflow in found[offset : offset + limit]]
        return approvals_of(page, len(found))

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Scope, UUID]]:
        """See `ports.WorkflowStore`."""
        found = [
            (workflow.due_at, key)
            for key, workflow in self.kept.items()
            if workflow.due_at is not None and workflow.due_at <= now
        ]
        found.sort(key=lambda one: one[0])
        return [key for _, key in found[:limit]]


class MemoryHandling:
    """See `ports.Handling`."""

    def __init__(self, store: MemoryWorkflowStore, handling: MemoryOnce) -> None:
        self._store = store
        self._handling = handling

    @property
    def replayed(self) -> Sequence[Message] | None:
        """See `ports.Handling`."""
        return self._handling.replayed

    async def workflow(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """See `ports.Handling`."""
        return self._store.kept.get((scope, workflow_id))

    async def save(self, workflow: Workflow) -> None:
        """See `ports.Handling`."""
        saved = {(workflow.scope, workflow.workflow_id): workflow}
        self._handling.stage(lambda: self._store.kept.update(saved))

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """See `ports.Handling`."""
        return self._handling.conclude(facts)
