"""Traces in memory; the twin of the Postgres store, under the same contract suite."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.learner import ExecutionTrace, ListTraces, TracePage
from pml_common.contracts.scope import Scope
from pml_common.storage.memory import MemoryInbox, MemoryInboxEntry
from pml_learner.domain.lesson import Experience, Lesson


class MemoryTraceStore:
    """See `ports.TraceStore`."""

    def __init__(self) -> None:
        self.inbox = MemoryInbox()
        self.experiences: dict[tuple[Scope, UUID], Experience] = {}
        self.kept: list[tuple[Scope, ExecutionTrace]] = []

    @asynccontextmanager
    async def once(self, message_id: UUID, consumer: str) -> AsyncGenerator["MemoryHandling"]:
        """See `ports.TraceStore`."""
        async with self.inbox.once(message_id, consumer) as handling:
            yield MemoryHandling(self, handling)

    async def traces(self, query: ListTraces) -> TracePage:
        """See `ports.TraceStore`."""
        found = sorted(
            (trace for scope, trace in self.kept if scope == query.scope and _wanted(trace, query)),
            key=lambda trace: (
                query.workflow_id is not None and trace.parent_trace_id is not None,
                -trace.executed_at,
                trace.trace_id,
            ),
        )
        page = found[query.offset : query.offset + query.limit]
        return TracePage(traces=tuple(page), total=len(found))


class MemoryHandling:
    """See `ports.Handling`."""

    def __init__(self, store: MemoryTraceStore, handling: MemoryInboxEntry) -> None:
        self._store = store
        self._handling = handling

    @property
    def replayed(self) -> Sequence[Message] | None:
        """See `ports.Handling`."""
        return self._handling.replayed

    async def experience_of(self, scope: Scope, capability: CapabilityIdentity) -> Experience:
        """See `ports.Handling`."""
        return self._store.experiences.get((scope, capability.capability_id), Experience())

    async def save(self, lesson: Lesson) -> None:
        """See `ports.Handling`."""
        scope, trace = lesson.run.scope, lesson.trace
        self._handling.stage(lambda: self._store.kept.append((scope, trace)))
        learned = {(scope, trace.capability_id): lesson.experience}
        self._handling.stage(lambda: self._store.experiences.update(learned))

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """See `ports.Handling`."""
        return self._handling.conclude(facts)


def _wanted(trace: ExecutionTrace, query: ListTraces) -> bool:
    return query.capability_id in (None, trace.capability_id) and query.workflow_id in (
        None,
        trace.workflow_id,
    )
