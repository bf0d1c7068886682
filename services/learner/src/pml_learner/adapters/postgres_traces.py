"""Traces and learning in Postgres, schema `learner`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID

import asyncpg
from pydantic import JsonValue, TypeAdapter
from typing_extensions import override

from pml_common.contracts.capability import CapabilityIdentity, Learning, Usage
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.learner import ExecutionTrace, ListTraces, TracePage
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import BranchDecision, TaskResult
from pml_common.storage import inbox
from pml_common.storage.columns import scope_columns
from pml_common.storage.inbox import InboxEntry
from pml_common.storage.pool import Pool, snapshot
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.store_transaction import StoreTransaction
from pml_learner.domain.lesson import Experience, Lesson
from pml_learner.ports import InboxTransaction, TraceStore

_SQL = load_queries("pml_learner")

_NODE_ID_LENGTH = 256

_RESULT: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
_ERROR: TypeAdapter[WorkflowError | None] = TypeAdapter(WorkflowError | None)
_DECISIONS = TypeAdapter(tuple[BranchDecision, ...])
_TASK_RESULTS = TypeAdapter(tuple[TaskResult, ...])

T = TypeVar("T")


class PostgresTraceStore(TraceStore):
    """Traces and learning in Postgres."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @override
    @asynccontextmanager
    async def once(self, message_id: UUID, consumer: str) -> AsyncGenerator["PostgresTransaction"]:
        async with inbox.once(self._pool, message_id, consumer) as handled:
            transaction = PostgresTransaction(handled)
            yield transaction
            await transaction.write(message_id, consumer)

    @override
    async def traces(self, query: ListTraces) -> TracePage:
        where = (*scope_columns(query.scope), query.capability_id, query.workflow_id)
        async with snapshot(self._pool) as session:
            rows = await session.fetch(_SQL["list-traces"], *where, query.limit, query.offset)
            total = await session.fetchval(_SQL["count-traces"], *where)
        return TracePage(traces=tuple(_trace(row) for row in rows), total=total)


class PostgresTransaction(StoreTransaction[InboxEntry], InboxTransaction):
    """Locks the capability's row. Lessons are written at the end, together with the inbox row."""

    def __init__(self, transaction: InboxEntry) -> None:
        super().__init__(transaction)
        self._lessons: list[Lesson] = []

    @override
    async def experience_of(self, scope: Scope, capability: CapabilityIdentity) -> Experience:
        session = self._transaction.connection
        key = (*scope_columns(scope), capability.capability_id)
        row = await session.fetchrow(_SQL["lock-experience"], *key)
        if row is None:
            await session.execute(_SQL["meet-capability"], *key, capability.code_hash)
            row = await session.fetchrow(_SQL["lock-experience"], *key)
        if row is None:
            raise LookupError(f"capability {capability.capability_id} vanished while locked")
        usage = Usage(
            count=row["run_count"],
            success_count=row["success_count"],
            mean_duration_ms=row["mean_duration_ms"],
        )
        return Experience(usage, Learning.model_validate_json(row["learning"]))

    @override
    async def save(self, lesson: Lesson) -> None:
        self._lessons.append(lesson)

    async def write(self, message_id: UUID, consumer: str) -> None:
        """Write all lessons, the last one together with the messages to publish."""
        for lesson in self._lessons:
            last = lesson is self._lessons[-1]
            scope, usage = lesson.run.scope, lesson.experience.usage
            await self._transaction.connection.execute(
                _SQL["save-lesson"],
                *scope_columns(scope),
                *_columns(lesson),
                usage.count,
                usage.success_count,
                usage.mean_duration_ms,
                lesson.experience.learning.model_dump_json(),
                message_id,
                consumer,
                inbox.encode_facts(self._transaction.take()) if last else None,
            )


def _columns(lesson: Lesson) -> tuple[object, ...]:
    trace, run = lesson.trace, lesson.run
    return (
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
        [_indexable(node_id) for node_id in trace.executed_path],
        _dump(_DECISIONS, trace.decisions),
        _dump(_TASK_RESULTS, trace.task_results),
        trace.priority,
        trace.parent_trace_id,
        trace.dry_run,
        None if trace.node_id is None else storable(trace.node_id),
        None if trace.name is None else storable(trace.name),
    )


def _indexable(node_id: str) -> str:
    """Shorten a node id for an index entry: programs choose the ids of dynamic calls."""
    return storable(node_id)[:_NODE_ID_LENGTH]


def _dump(adapter: TypeAdapter[T], value: T) -> str:
    return adapter.dump_json(value, by_alias=True).decode()


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
    )
