"""Traces in memory; tested by the same suite as the Postgres store."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.learner import ExecutionTrace, ListTraces, TracePage
from pml_common.contracts.scope import Scope
from pml_common.storage.memory import MemoryInbox, MemoryInboxBatch
from pml_common.storage.store_transaction import StoreBatch
from pml_learner.domain.lesson import Experience, Lesson, ScopedCapability
from pml_learner.ports import LearningBatch, TraceStore


class MemoryTraceStore(TraceStore):
    """Traces and learning in dictionaries."""

    def __init__(self) -> None:
        self.inbox = MemoryInbox()
        self.experiences: dict[ScopedCapability, Experience] = {}
        self.stored: list[tuple[Scope, ExecutionTrace]] = []

    @override
    @asynccontextmanager
    async def batch(
        self, message_ids: Collection[UUID], consumer: str
    ) -> AsyncGenerator["MemoryLearningBatch"]:
        async with self.inbox.batch_once(message_ids, consumer) as batch:
            yield MemoryLearningBatch(self, batch)

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

    @override
    async def forget(self, before: datetime, limit: int) -> int:
        first_kept = before.timestamp() * 1000
        old = {
            (scope, trace.workflow_id)
            for scope, trace in self.stored
            if trace.executed_at < first_kept
        }
        gone = set(list(old)[:limit])
        self.stored = [
            (scope, trace) for scope, trace in self.stored if (scope, trace.workflow_id) not in gone
        ]
        return len(gone)


class MemoryLearningBatch(StoreBatch[MemoryInboxBatch], LearningBatch):
    """Stages changes until the messages are concluded."""

    def __init__(self, store: MemoryTraceStore, batch: MemoryInboxBatch) -> None:
        super().__init__(batch)
        self._store = store

    @override
    async def experience_of(
        self, capabilities: Mapping[ScopedCapability, CapabilityIdentity]
    ) -> Mapping[ScopedCapability, Experience]:
        known = self._store.experiences
        return {capability: known.get(capability, Experience()) for capability in capabilities}

    @override
    async def save(self, lessons: Sequence[Lesson]) -> None:
        traces = [(lesson.run.scope, lesson.trace) for lesson in lessons]
        learned = {lesson.capability: lesson.experience for lesson in lessons}
        self._batch.stage(lambda: self._store.stored.extend(traces))
        self._batch.stage(lambda: self._store.experiences.update(learned))


def _matches(trace: ExecutionTrace, query: ListTraces) -> bool:
    return query.capability_id in (None, trace.capability_id) and query.workflow_id in (
        None,
        trace.workflow_id,
    )
