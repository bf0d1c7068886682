"""Traces in memory; tested by the same suite as the Postgres store."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.learner import ExecutionTrace, ListTraces, TracePage
from pml_common.contracts.scope import Scope
from pml_common.storage.memory import MemoryInbox, MemoryInboxEntry
from pml_common.storage.store_transaction import StoreTransaction
from pml_learner.domain.lesson import Experience, Lesson
from pml_learner.ports import InboxTransaction, TraceStore


class MemoryTraceStore(TraceStore):
    """Traces and learning in dictionaries."""

    def __init__(self) -> None:
        self.inbox = MemoryInbox()
        self.experiences: dict[tuple[Scope, UUID], Experience] = {}
        self.stored: list[tuple[Scope, ExecutionTrace]] = []

    @override
    @asynccontextmanager
    async def once(self, message_id: UUID, consumer: str) -> AsyncGenerator["MemoryTransaction"]:
        async with self.inbox.once(message_id, consumer) as transaction:
            yield MemoryTransaction(self, transaction)

    @override
    async def traces(self, query: ListTraces) -> TracePage:
        found = sorted(
            (
                trace
                for scope, trace in self.stored
                if scope == query.scope and _matches(trace, query)
            ),
            key=lambda trace: (
                query.workflow_id is not None and trace.parent_trace_id is not None,
                -trace.executed_at,
                trace.trace_id,
            ),
        )
        page = found[query.offset : query.offset + query.limit]
        return TracePage(traces=tuple(page), total=len(found))


class MemoryTransaction(StoreTransaction[MemoryInboxEntry], InboxTransaction):
    """Stages changes until the message is concluded."""

    def __init__(self, store: MemoryTraceStore, transaction: MemoryInboxEntry) -> None:
        super().__init__(transaction)
        self._store = store

    @override
    async def experience_of(self, scope: Scope, capability: CapabilityIdentity) -> Experience:
        return self._store.experiences.get((scope, capability.capability_id), Experience())

    @override
    async def save(self, lesson: Lesson) -> None:
        scope, trace = lesson.run.scope, lesson.trace
        self._transaction.stage(lambda: self._store.stored.append((scope, trace)))
        learned = {(scope, trace.capability_id): lesson.experience}
        self._transaction.stage(lambda: self._store.experiences.update(learned))


def _matches(trace: ExecutionTrace, query: ListTraces) -> bool:
    return query.capability_id in (None, trace.capability_id) and query.workflow_id in (
        None,
        trace.workflow_id,
    )
