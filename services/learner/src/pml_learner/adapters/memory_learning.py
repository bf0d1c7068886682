"""Learned experience of capabilities, in memory."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from pml_common.contracts.learner import ExecutionTrace
from pml_common.contracts.scope import Scope
from pml_learner.domain.lesson import ScopedCapability
from pml_learner.domain.relearning import Learned, StoredTrace
from pml_learner.domain.retention import Retention, executed_at, month_of


class MemoryLearning:
    """Reads and changes what was learned, apart from batches."""

    def __init__(self) -> None:
        self.learned: dict[ScopedCapability, Learned] = {}
        self.stored: list[tuple[Scope, ExecutionTrace]] = []
        self.principals: dict[tuple[Scope, UUID], str] = {}
        """Principals of traces, by scope and the id of the trace."""
        self.lock = asyncio.Lock()
        """Held by batches and whatever must not happen meanwhile."""

    @asynccontextmanager
    async def relearning(
        self, capability: ScopedCapability
    ) -> AsyncGenerator["MemoryRelearning | None"]:
        async with self.lock:
            known = self.learned.get(capability)
            yield None if known is None else MemoryRelearning(self, capability, known)

    async def stale(self, rule_version: int, limit: int) -> Sequence[ScopedCapability]:
        return [
            capability
            for capability, learned in self.learned.items()
            if (learned.is_stale and learned.experience.rule_version <= rule_version)
            or (
                learned.experience.rule_version < rule_version
                and learned.experience.position > learned.base_position
            )
        ][:limit]

    async def capabilities(
        self, scope: Scope, after: UUID | None, limit: int
    ) -> tuple[Sequence[UUID], int]:
        found = sorted(
            capability_id
            for (of, capability_id), learned in self.learned.items()
            if of == scope and learned.experience.position
        )
        left = [each for each in found if after is None or each > after]
        return left[:limit], len(left)

    async def unfolded(
        self, scope: Scope, workflows: Collection[UUID]
    ) -> Mapping[ScopedCapability, int]:
        return self._unfolded(
            (of, trace)
            for of, trace in self.stored
            if of == scope and trace.workflow_id in workflows
        )

    async def unfolded_of_months(
        self, retention: Retention, now: datetime
    ) -> Mapping[ScopedCapability, int]:
        months = self.old_months(retention, now)
        return self._unfolded(
            (scope, trace) for scope, trace in self.stored if month_of(executed_at(trace)) in months
        )

    async def drop_months(self, retention: Retention, now: datetime) -> None:
        gone = self.old_months(retention, now)
        self.stored = [
            (scope, trace)
            for scope, trace in self.stored
            if month_of(executed_at(trace)) not in gone
        ]

    def old_months(self, retention: Retention, now: datetime) -> Collection[tuple[int, int]]:
        """Return the months of which no scope keeps any trace."""
        gone = {month_of(executed_at(trace)) for _, trace in self.stored}
        for scope, trace in self.stored:
            month = month_of(executed_at(trace))
            is_kept = executed_at(trace) >= retention.since(scope, now)
            if is_kept or month >= month_of(now - retention.default):
                gone.discard(month)
        return gone

    def _unfolded(
        self, traces: Iterable[tuple[Scope, ExecutionTrace]]
    ) -> Mapping[ScopedCapability, int]:
        found: dict[ScopedCapability, int] = {}
        for scope, trace in traces:
            capability = scope, trace.capability_id
            position = trace.position or 0
            if capability in self.learned and position > self.learned[capability].base_position:
                found[capability] = max(position, found.get(capability, 0))
        return found


class MemoryRelearning:
    """The row of a capability."""

    def __init__(self, store: MemoryLearning, key: ScopedCapability, learned: Learned) -> None:
        self._store = store
        self._key = key
        self.learned = learned

    async def traces(self, after: int, up_to: int, limit: int) -> Sequence[StoredTrace]:
        scope, capability_id = self._key
        found = [
            StoredTrace(trace.position, trace, self._store.principals[scope, trace.trace_id])
            for of, trace in self._store.stored
            if (of, trace.capability_id) == (scope, capability_id)
            and trace.position is not None
            and after < trace.position <= up_to
        ]
        return sorted(found, key=lambda each: each.position)[:limit]

    async def put(self, learned: Learned) -> None:
        known = replace(learned.experience, new_base=None)
        self._store.learned[self._key] = replace(learned, experience=known)
