"""Learned experience of capabilities, in Postgres: rows of the table `learning`."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
from pydantic import TypeAdapter

from pml_common.contracts.capability import Learning, Usage
from pml_common.contracts.learner import ExecutionTrace
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import BranchDecision, TaskResult
from pml_common.storage.columns import scope_columns, scope_of
from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_learner.domain.lesson import Experience, ScopedCapability
from pml_learner.domain.relearning import Learned, StoredTrace
from pml_learner.domain.state import State
from pml_learner.domain.stored_state import adopted, dumped, loaded

_SQL = load_queries("pml_learner")
_DECISIONS = TypeAdapter(tuple[BranchDecision, ...])
_TASK_RESULTS = TypeAdapter(tuple[TaskResult, ...])


class PostgresLearning:
    """Reads and changes what was learned, apart from batches."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @asynccontextmanager
    async def relearning(
        self, capability: ScopedCapability
    ) -> AsyncGenerator["PostgresRelearning | None"]:
        async with self._pools.transaction(capability[0]) as session:
            row = await session.fetchrow(_SQL["lock-learned"], *key_of(capability))
            if row is None:
                yield None
                return
            yield PostgresRelearning(session, capability, learned_of(row))

    async def stale(self, rule_version: int, limit: int) -> Sequence[ScopedCapability]:
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["list-stale"], rule_version, limit)
        return [(scope_of(row), row["capability_id"]) for row in rows]

    async def capabilities(
        self, scope: Scope, after: UUID | None, limit: int
    ) -> tuple[Sequence[UUID], int]:
        where = (*scope_columns(scope), after)
        rows = await self._pools.fetch(scope, _SQL["list-capabilities"], *where, limit)
        left = await self._pools.fetchval(scope, _SQL["count-capabilities"], *where)
        return [row["capability_id"] for row in rows], left

    async def unfolded(
        self, scope: Scope, workflows: Collection[UUID]
    ) -> Mapping[ScopedCapability, int]:
        key = (*scope_columns(scope), list(workflows))
        rows = await self._pools.fetch(scope, _SQL["unfolded-of-workflows"], *key)
        return positions_of(rows)


class PostgresRelearning:
    """The locked row of a capability."""

    def __init__(self, session: Connection, capability: ScopedCapability, learned: Learned) -> None:
        self._session = session
        self._key = key_of(capability)
        self.learned = learned

    async def traces(self, after: int, up_to: int, limit: int) -> Sequence[StoredTrace]:
        page = after, up_to, limit
        rows = await self._session.fetch(_SQL["list-lessons"], *self._key, *page)
        return [_stored_trace(row) for row in rows]

    async def put(self, learned: Learned) -> None:
        known = learned.experience
        await self._session.execute(
            _SQL["put-learned"],
            *self._key,
            known.position,
            *counts_of(known),
            dumped(known.state),
            known.rule_version,
            known.rebuilds,
            known.base_position,
            dumped(learned.base),
            learned.rebuilt_position,
            learned.rebuilt_version,
            None if learned.rebuilt is None else dumped(learned.rebuilt),
            learned.is_stale,
        )


def key_of(capability: ScopedCapability) -> tuple[str, str, UUID]:
    """Return the key of a capability's row."""
    scope, capability_id = capability
    return (*scope_columns(scope), capability_id)


def positions_of(rows: Sequence[asyncpg.Record]) -> Mapping[ScopedCapability, int]:
    """Return the positions in rows, by capability."""
    return {(scope_of(row), row["capability_id"]): row["position"] for row in rows}


def counts_of(known: Experience) -> tuple[int, int, float, str]:
    """Return the columns that processes from before there were states know."""
    usage = known.usage
    learning = known.learning.model_dump_json()
    return usage.success_count, usage.success_streak, usage.mean_duration_ms, learning


def experience_of(row: asyncpg.Record) -> Experience:
    """Return the experience in a row; its lessons from before there were states, or of processes
    that know none, are its base."""
    if row["run_count"] == row["position"]:
        return Experience(
            state=State() if row["state"] is None else loaded(row["state"]),
            position=row["position"],
            base_position=row["base_position"],
            rule_version=row["rule_version"],
            rebuilds=row["rebuilds"],
        )
    usage = Usage(
        count=row["run_count"],
        success_count=row["success_count"],
        success_streak=row["success_streak"],
        mean_duration_ms=row["mean_duration_ms"],
    )
    state = adopted(usage, Learning.model_validate_json(row["learning"]))
    position = row["run_count"]
    return Experience(state, position, position, 0, row["rebuilds"], new_base=state)


def learned_of(row: asyncpg.Record) -> Learned:
    """Return everything in a row."""
    known = experience_of(row)
    if known.new_base is not None:
        return Learned(known, known.new_base)
    return Learned(
        known,
        State() if row["base"] is None else loaded(row["base"]),
        None if row["rebuilt"] is None else loaded(row["rebuilt"]),
        row["rebuilt_position"],
        row["rebuilt_version"],
        row["is_stale"],
    )


def _stored_trace(row: asyncpg.Record) -> StoredTrace:
    trace = ExecutionTrace(
        trace_id=row["id"],
        capability_id=row["capability_id"],
        workflow_id=row["workflow_id"],
        executed_at=row["executed_at_ms"],
        success=row["success"],
        duration_ms=row["duration_ms"],
        executed_path=tuple(row["executed_path"]),
        decisions=_DECISIONS.validate_json(row["decisions"]),
        task_results=_TASK_RESULTS.validate_json(row["task_results"]),
        priority=row["priority"],
        fault=row["fault"],
        position=row["position"],
    )
    return StoredTrace(row["position"], trace, row["user_id"])
