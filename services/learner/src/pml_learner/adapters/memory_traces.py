"""Traces in memory; tested by the same suite as the Postgres store."""

from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.learner import (
    COUNTED_TRACES,
    ExecutionTrace,
    Feedback,
    FeedbackPage,
    FindTrace,
    GiveFeedback,
    ListFeedback,
    ListToolUsage,
    ListTraces,
    ToolUsage,
    ToolUsagePage,
    TracePage,
)
from pml_common.contracts.scope import Scope
from pml_common.storage.memory import MemoryInbox, MemoryInboxBatch
from pml_common.storage.store_transaction import StoreBatch
from pml_learner.adapters.memory_learning import MemoryLearning
from pml_learner.domain.large_results import INLINE_BYTES, trace_of
from pml_learner.domain.lesson import Experience, Lesson, ScopedCapability
from pml_learner.domain.opinions import LAST, WEIGHED_OF_ONE_HOUR, Opinion, Weights, valued
from pml_learner.domain.orders import MOST_CALLED, MOST_JUDGED, sliced_traces
from pml_learner.domain.relearning import Learned
from pml_learner.domain.replay import PastRun, RunKey
from pml_learner.domain.retention import executed_at
from pml_learner.domain.state import State
from pml_learner.domain.tool_usage import Calls, UsedTool
from pml_learner.ports import AlreadyStored, LearningBatch, Past, TraceStore


class MemoryTraceStore(MemoryLearning, TraceStore):
    """Traces and learning in dictionaries."""

    def __init__(self, most_bytes: int = INLINE_BYTES) -> None:
        super().__init__()
        self.most_bytes = most_bytes
        self.inbox = MemoryInbox()
        self.calls: dict[UsedTool, Calls] = {}
        self.deleted: set[tuple[Scope, UUID]] = set()
        """Workflows whose data was deleted."""
        self.opinions: dict[tuple[Scope, UUID, str], tuple[UUID, Opinion]] = {}
        """By workflow and principal, in the order in which they were given: the capability, and
        whether its run was useful."""
        self._judged = 0

    @override
    async def make_room(self, times: Iterable[float]) -> None:
        pass

    @override
    async def know_months(self) -> None:
        pass

    @override
    @asynccontextmanager
    async def batch(
        self, message_ids: Collection[UUID], consumer: str
    ) -> AsyncGenerator["MemoryLearningBatch"]:
        async with self.lock, self.inbox.batch_once(message_ids, consumer) as batch:
            yield MemoryLearningBatch(self, batch)

    @override
    async def traces(self, query: ListTraces) -> TracePage:
        found = [
            trace for scope, trace in self.stored if scope == query.scope and _matches(trace, query)
        ]
        page, following = sliced_traces(query, found)
        total = min(len(found), COUNTED_TRACES)
        return TracePage(traces=page, total=total, next_cursor=following)

    @override
    async def trace(self, query: FindTrace) -> ExecutionTrace | None:
        key = query.scope, query.trace_id
        return next((each for scope, each in self.stored if (scope, each.trace_id) == key), None)

    def count(self, calls: Mapping[UsedTool, Calls]) -> None:
        """Add calls to those counted before."""
        for used, made in calls.items():
            self.calls[used] = self.calls.get(used, Calls()).plus(made)

    @override
    async def usage(self, query: ListToolUsage) -> ToolUsagePage:
        found = [
            _usage(used, made)
            for used, made in self.calls.items()
            if used.scope == query.scope and query.server_id in (None, used.server_id)
        ]
        page, following = MOST_CALLED.sliced(found, query.cursor, query.offset, query.limit)
        calls = sum(each.calls for each in found)
        return ToolUsagePage(usage=page, total=len(found), calls=calls, next_cursor=following)

    @override
    async def judge(self, given: GiveFeedback) -> Feedback | None:
        for scope, trace in self.stored:
            is_run = trace.parent_trace_id is None and not trace.dry_run
            if (scope, trace.workflow_id) == (given.scope, given.workflow_id) and is_run:
                key = given.scope, given.workflow_id, given.principal
                self.opinions.pop(key, None)  # the last given is the last in order
                self._judged += 1
                hour = int(datetime.now(UTC).timestamp() // 3600)
                said = Opinion(given.principal, given.useful, hour)
                self.opinions[key] = trace.capability_id, said
                return self._feedback(given.scope)[trace.capability_id]
        return None

    @override
    async def weights(self, scope: Scope, workflow_id: UUID) -> Weights | None:
        # All of them are of one hour here.
        given, weighed = Counter[str](), list[tuple[bool, bool]]()
        for (of, of_workflow, principal), (_, opinion) in self.opinions.items():
            if of == scope:
                given[principal] += 1
                if of_workflow == workflow_id:
                    weighed.append((opinion.useful, given[principal] <= WEIGHED_OF_ONE_HOUR))
        if not weighed:
            return None
        said = Counter(useful for useful, weighs in weighed if weighs)
        return Weights(said[True], said[False], float(self._judged))

    @override
    async def judged(self, query: ListFeedback) -> FeedbackPage:
        found = list(self._feedback(query.scope).values())
        page, following = MOST_JUDGED.sliced(found, query.cursor, query.offset, query.limit)
        return FeedbackPage(feedback=page, total=len(found), next_cursor=following)

    def _feedback(self, scope: Scope) -> dict[UUID, Feedback]:
        found: dict[UUID, list[Opinion]] = {}
        for (of, _, _), (capability_id, opinion) in self.opinions.items():
            if of == scope:
                found.setdefault(capability_id, []).append(opinion)
        return {each: _counted(each, said) for each, said in found.items()}

    def store(self, lessons: Sequence[Lesson]) -> None:
        """Add traces, but for those of workflows whose data was deleted."""
        for lesson in lessons:
            scope, trace = lesson.run.scope, trace_of(lesson, self.most_bytes)
            if (scope, trace.workflow_id) not in self.deleted:
                self.stored.append((scope, trace))
                self.principals[scope, trace.trace_id] = lesson.run.principal

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Keep the last experience of each capability."""
        for lesson in lessons:
            if lesson.position is not None:
                known = self.learned.get(lesson.capability, Learned(Experience(), State()))
                after = replace(lesson.experience, new_base=None)
                self.learned[lesson.capability] = replace(
                    known, experience=after, is_stale=not lesson.is_taught
                )

    @override
    async def note_deletion(self, scope: Scope, workflow_id: UUID) -> None:
        async with self.lock:
            self.deleted.add((scope, workflow_id))

    @override
    async def past(self, after: ScopedCapability | None, limit: int) -> Past | None:
        learned = [each for each, known in self.learned.items() if known.experience.usage.count]
        later = [each for each in learned if after is None or place_of(each) > place_of(after)]
        if not later:
            return None
        scope, capability_id = capability = min(later, key=place_of)
        found = [
            trace
            for of, trace in self.stored
            if (of, trace.capability_id) == (scope, capability_id) and is_judged(trace)
        ]
        newest = sorted(found, key=lambda trace: -trace.executed_at)[:limit]
        runs = {
            (t.trace_id, executed_at(t)): PastRun(
                t.executed_path, t.success, t.duration_ms, t.priority
            )
            for t in newest
        }
        return Past(capability, self.learned[capability].experience.learning, runs)

    @override
    async def refresh(
        self, capability: ScopedCapability, priorities: Mapping[RunKey, float]
    ) -> None:
        fresh = {(capability[0], trace_id): new for (trace_id, _), new in priorities.items()}
        self.stored = [
            (scope, trace.model_copy(update={"priority": fresh[scope, trace.trace_id]}))
            if (scope, trace.trace_id) in fresh
            else (scope, trace)
            for scope, trace in self.stored
        ]

    @override
    async def scopes(self) -> Sequence[Scope]:
        return list(dict.fromkeys(scope for scope, _ in self.stored))

    @override
    async def old(self, scope: Scope, before: datetime, limit: int) -> Sequence[UUID]:
        old = [t.workflow_id for of, t in self.stored if of == scope and executed_at(t) < before]
        return list(dict.fromkeys(old))[:limit]

    @override
    async def of_principal(
        self, scope: Scope, principal: str, before: datetime, limit: int
    ) -> Sequence[UUID]:
        found = [
            trace.workflow_id
            for of, trace in self.stored
            if of == scope
            and executed_at(trace) < before
            and self.principals[of, trace.trace_id] == principal
        ]
        return list(dict.fromkeys(found))[:limit]

    @override
    async def drop_opinions(self, scope: Scope, principal: str, before: datetime) -> None:
        for of, workflow_id, who in list(self.opinions):
            if (of, who) == (scope, principal):
                del self.opinions[of, workflow_id, who]

    @override
    async def remove(self, scope: Scope, workflows: Collection[UUID]) -> None:
        self.stored = [
            (of, trace)
            for of, trace in self.stored
            if of != scope or trace.workflow_id not in workflows
        ]


class MemoryLearningBatch(StoreBatch[MemoryInboxBatch], LearningBatch):
    """Stages changes until the messages are concluded."""

    def __init__(self, store: MemoryTraceStore, batch: MemoryInboxBatch) -> None:
        super().__init__(batch)
        self._store = store

    @override
    async def deleted_among(
        self, workflows: Collection[tuple[Scope, UUID]]
    ) -> Collection[tuple[Scope, UUID]]:
        return self._store.deleted & set(workflows)

    @override
    async def experience_of(
        self, capabilities: Mapping[ScopedCapability, CapabilityIdentity]
    ) -> Mapping[ScopedCapability, Experience]:
        known = self._store.learned
        return {
            capability: known[capability].experience if capability in known else Experience()
            for capability in capabilities
        }

    @override
    async def save(self, lessons: Sequence[Lesson], calls: Mapping[UsedTool, Calls]) -> None:
        most = self._store.most_bytes
        traces = [(lesson.run.scope, trace_of(lesson, most)) for lesson in lessons]
        keys = {(scope, trace.trace_id) for scope, trace in self._store.stored}
        for scope, trace in traces:
            if (scope, trace.trace_id) in keys:
                raise AlreadyStored(trace.trace_id)
            keys.add((scope, trace.trace_id))
        self._batch.stage(lambda: self._store.store(lessons))
        self._batch.stage(lambda: self._store.learn(lessons))
        self._batch.stage(lambda: self._store.count(calls))


def is_judged(trace: ExecutionTrace) -> bool:
    """Whether a run taught something of its capability."""
    return trace.position is not None and trace.fault in (None, "capability")


def place_of(capability: ScopedCapability) -> tuple[str, str, UUID]:
    """The place of a capability in the order of all."""
    scope, capability_id = capability
    return scope.org, scope.project, capability_id


def _counted(capability_id: UUID, said: Sequence[Opinion]) -> Feedback:
    useful = sum(each.useful for each in said)
    counted = Feedback(capability_id=capability_id, useful=useful, not_useful=len(said) - useful)
    return valued(counted, said[-LAST:])


def _usage(used: UsedTool, made: Calls) -> ToolUsage:
    return ToolUsage(
        server_id=used.server_id,
        tool_id=used.tool_id,
        calls=made.count,
        succeeded=made.succeeded,
        mean_duration_ms=made.duration_ms / made.count,
        last_called_at=datetime.fromtimestamp(made.last_at / 1000, UTC),
    )


def _matches(trace: ExecutionTrace, query: ListTraces) -> bool:
    return (
        query.capability_id in (None, trace.capability_id)
        and query.workflow_id in (None, trace.workflow_id)
        and query.intent in (None, trace.intent)
    )
