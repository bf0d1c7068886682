"""Traces and learning in Postgres, schema `learner`."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID

import asyncpg
from pydantic import JsonValue, TypeAdapter
from typing_extensions import override

from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.learner import (
    COUNTED_TRACES,
    ExecutionTrace,
    FindTrace,
    LargeResult,
    ListTraces,
    TracePage,
)
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import BranchDecision, TaskResult
from pml_common.storage import inbox
from pml_common.storage.columns import columns, scope_columns, scope_of
from pml_common.storage.inbox import InboxBatch
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.recent_keys import RecentKeys
from pml_common.storage.scoped import BoundPool, ScopedPools
from pml_learner.adapters.postgres_learning import (
    PostgresLearning,
    counts_of,
    experience_of,
    key_of,
)
from pml_learner.adapters.postgres_months import PostgresMonths
from pml_learner.adapters.postgres_replay import PostgresReplay
from pml_learner.adapters.postgres_usage import PostgresUsage
from pml_learner.domain.large_results import INLINE_BYTES, trace_of
from pml_learner.domain.lesson import Experience, Lesson, ScopedCapability
from pml_learner.domain.orders import order_of
from pml_learner.domain.outcome import stored_node_id
from pml_learner.domain.stored_state import dumped
from pml_learner.domain.tool_usage import Calls, UsedTool
from pml_learner.ports import AlreadyStored, LearningBatch, TraceStore

_SQL = load_queries("pml_learner")

_TRACES_AT_ONCE = 100
_MET = 10_000
"""The number of capabilities that are remembered to have a row."""

_START = (None,) * 3
"""The place before the first entry of a list."""

_RESULT: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
_ERROR: TypeAdapter[WorkflowError | None] = TypeAdapter(WorkflowError | None)
_DECISIONS = TypeAdapter(tuple[BranchDecision, ...])
_TASK_RESULTS = TypeAdapter(tuple[TaskResult, ...])
_LARGE_RESULTS = TypeAdapter(tuple[LargeResult, ...])

T = TypeVar("T")


class PostgresTraceStore(
    PostgresMonths, PostgresReplay, PostgresUsage, PostgresLearning, TraceStore
):
    """Traces and learning in Postgres."""

    def __init__(self, pools: ScopedPools, most_bytes: int = INLINE_BYTES) -> None:
        """`most_bytes`: of the JSON of a result in a trace."""
        super().__init__(pools)
        self._most_bytes = most_bytes
        self._met = RecentKeys[ScopedCapability](_MET)

    @override
    @asynccontextmanager
    async def batch(
        self, message_ids: Collection[UUID], consumer: str
    ) -> AsyncGenerator["PostgresLearningBatch"]:
        async with inbox.batch_once(self._pools.batch, message_ids, consumer) as handled:
            batch = PostgresLearningBatch(handled, self._met, self._most_bytes)
            yield batch
            try:
                await batch.write(consumer)
            except asyncpg.CheckViolationError:  # another replica dropped a month
                self.forget_months()
                raise
        self._met.add(batch.capabilities)

    @override
    async def traces(self, query: ListTraces) -> TracePage:
        intent = None if query.intent is None else storable(query.intent)
        filters = query.capability_id, query.workflow_id, intent
        where = (*scope_columns(query.scope), *filters)
        order, name = order_of(query), "list-traces"
        page = query.limit + 1, query.offset, *(order.after(query.cursor) or _START)
        if query.order == "priority":
            name = "list-traces-by-priority"
        # By intent: only leakproof operators reach an index past a policy, and md5() is none.
        pool = self._pools if intent is None else BoundPool(self._pools.batch)
        async with pool.snapshot(query.scope) as session:
            await session.execute(_SQL["plan-each"])
            rows = await session.fetch(_SQL[name], *where, *page)
            total = await session.fetchval(_SQL["count-traces"], *where, COUNTED_TRACES)
        traces, following = order.cut([_trace(row) for row in rows], query.limit)
        return TracePage(traces=traces, total=total, next_cursor=following)

    @override
    async def trace(self, query: FindTrace) -> ExecutionTrace | None:
        key = *scope_columns(query.scope), query.trace_id
        row = await self._pools.fetchrow(query.scope, _SQL["find-trace"], *key)
        return None if row is None else _trace(row)

    @override
    async def note_deletion(self, scope: Scope, workflow_id: UUID) -> None:
        key = (*scope_columns(scope), workflow_id)
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["await-traces"])
            for step in ("note-deletion", "erase-comments"):
                await session.execute(_SQL[step], *key)


class PostgresLearningBatch(LearningBatch):
    """Locks the rows of capabilities in one order; those not met before get theirs first. Lessons
    are written at the end, together with the inbox rows."""

    def __init__(
        self, batch: InboxBatch, met: RecentKeys[ScopedCapability], most_bytes: int
    ) -> None:
        self._batch = batch
        self._met = met
        self._most_bytes = most_bytes
        self._lessons: Sequence[Lesson] = ()
        self._calls: Mapping[UsedTool, Calls] = {}
        self.capabilities: Sequence[ScopedCapability] = ()

    @property
    @override
    def replayed(self) -> Mapping[UUID, Sequence[Message]]:
        return self._batch.replayed

    @override
    def conclude(self, facts: Mapping[UUID, Sequence[Message]]) -> Mapping[UUID, Sequence[Message]]:
        return self._batch.conclude(facts)

    @override
    async def deleted_among(
        self, workflows: Collection[tuple[Scope, UUID]]
    ) -> Collection[tuple[Scope, UUID]]:
        session = self._batch.connection
        await session.execute(_SQL["hold-deletions"])
        keys = [(*scope_columns(scope), workflow_id) for scope, workflow_id in workflows]
        rows = await session.fetch(_SQL["list-deleted"], *columns(keys, 3))
        return {(scope_of(row), row["workflow_id"]) for row in rows}

    @override
    async def experience_of(
        self, capabilities: Mapping[ScopedCapability, CapabilityIdentity]
    ) -> Mapping[ScopedCapability, Experience]:
        session = self._batch.connection
        self.capabilities = sorted(capabilities, key=key_of)
        if new := [each for each in self.capabilities if each not in self._met]:
            rows = [(*key_of(each), capabilities[each].code_hash) for each in new]
            await session.execute(_SQL["meet-capabilities"], *columns(rows, 4))
        keys = columns([key_of(each) for each in self.capabilities], 3)
        found = await session.fetch(_SQL["lock-experiences"], *keys)
        if len(found) < len(self.capabilities):  # the tables were emptied or restored meanwhile
            self._met.clear()
            raise LookupError("capabilities that had a row have none; all are met again")
        return {(scope_of(row), row["capability_id"]): experience_of(row) for row in found}

    @override
    async def save(self, lessons: Sequence[Lesson], calls: Mapping[UsedTool, Calls]) -> None:
        self._lessons, self._calls = lessons, calls

    async def write(self, consumer: str) -> None:
        """Write all lessons, the last of them together with the messages to publish, and count
        calls. Raises AlreadyStored."""
        await self._require_new()
        if self._calls:
            rows = [_call_columns(used, made) for used, made in self._calls.items()]
            await self._batch.connection.execute(_SQL["count-calls"], *columns(rows, 8))
        last_lessons = {
            lesson.capability: lesson for lesson in self._lessons if lesson.position is not None
        }
        experiences = [
            (*key_of(each), *_experience_columns(last.experience, is_stale=not last.is_taught))
            for each, last in last_lessons.items()
        ]
        for start in range(0, len(self._lessons), _TRACES_AT_ONCE):
            end = start + _TRACES_AT_ONCE
            last = end >= len(self._lessons)
            some = self._lessons[start:end]
            traces = [trace_of(lesson, self._most_bytes) for lesson in some]
            await self._batch.connection.execute(
                _SQL["save-lessons"],
                *columns([_columns(*each) for each in zip(some, traces, strict=True)], 25),
                *columns(experiences if last else (), 13),
                *columns(self._batch.take() if last else (), 2),
                consumer,
                [_dump_large(trace) for trace in traces],
            )

    async def _require_new(self) -> None:
        keys = [(*scope_columns(each.run.scope), each.run.trace_id) for each in self._lessons]
        twice = [trace_id for (*_, trace_id), times in Counter(keys).items() if times > 1]
        rows = await self._batch.connection.fetch(_SQL["find-stored"], *columns(keys, 3))
        for trace_id in (*twice, *(row["id"] for row in rows)):
            raise AlreadyStored(trace_id)


def _experience_columns(known: Experience, *, is_stale: bool) -> tuple[object, ...]:
    base = None if known.new_base is None else dumped(known.new_base)
    versions = known.rule_version, known.base_position
    return known.position, *counts_of(known), dumped(known.state), *versions, base, is_stale


def _columns(lesson: Lesson, trace: ExecutionTrace) -> tuple[object, ...]:
    run = lesson.run
    return (
        *scope_columns(run.scope),
        trace.trace_id,
        trace.capability_id,
        trace.workflow_id,
        run.capability.code_hash,
        None if trace.intent is None else storable(trace.intent),
        trace.executed_at,
        trace.success,
        trace.duration_ms,
        _dump(_RESULT, trace.result),
        None if trace.error is None else _dump(_ERROR, trace.error),
        None if trace.error is None else storable(trace.error.message),
        storable(run.principal),
        json.dumps(
            [stored_node_id(node_id) for node_id in trace.executed_path], ensure_ascii=False
        ),
        _dump(_DECISIONS, trace.decisions),
        _dump(_TASK_RESULTS, trace.task_results),
        trace.priority,
        trace.parent_trace_id,
        trace.dry_run,
        None if trace.node_id is None else storable(trace.node_id),
        None if trace.name is None else storable(trace.name),
        trace.discovery_id,
        trace.fault,
        trace.position,
    )


def _call_columns(used: UsedTool, made: Calls) -> tuple[object, ...]:
    tool = storable(used.server_id), storable(used.tool_id)
    return *scope_columns(used.scope), *tool, made.count, made.succeeded, *_times(made)


def _times(made: Calls) -> tuple[float, float]:
    return made.duration_ms, made.last_at


def _dump(adapter: TypeAdapter[T], value: T) -> str:
    return adapter.dump_json(value, by_alias=True).decode()


def _dump_large(trace: ExecutionTrace) -> str | None:
    return _dump(_LARGE_RESULTS, trace.large_results) if trace.large_results else None


def _trace(row: asyncpg.Record) -> ExecutionTrace:
    return ExecutionTrace(
        trace_id=row["id"],
        parent_trace_id=row["parent_trace_id"],
        capability_id=row["capability_id"],
        workflow_id=row["workflow_id"],
        intent=row["intent_text"],
        executed_at=row["executed_at_ms"],
        success=row["success"],
        duration_ms=row["duration_ms"],
        result=_RESULT.validate_json(row["result"]),
        error=None if row["error"] is None else _ERROR.validate_json(row["error"]),
        executed_path=tuple(row["executed_path"]),
        decisions=_DECISIONS.validate_json(row["decisions"]),
        task_results=_TASK_RESULTS.validate_json(row["task_results"]),
        priority=row["priority"],
        dry_run=row["dry_run"],
        node_id=row["node_id"],
        name=row["name"],
        discovery_id=row["discovery_id"],
        large_results=_LARGE_RESULTS.validate_json(row["large_results"] or "[]"),
        fault=row["fault"],
        position=row["position"],
    )
