"""Workflows as they are with the ends of runs that are not stored in Postgres yet."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from uuid import UUID

from typing_extensions import override

from pml_common.bus.errors import BusError, Unreadable
from pml_common.bus.port import Journal, StoredMessage
from pml_common.contracts import catalog
from pml_common.contracts.base import Event, Message
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.views import ApprovalPage, WorkflowPage, summary_of
from pml_gateway.domain.workflow.workflow import Step, Workflow, run_ended
from pml_gateway.ports import EndHearingStore, Taken, WorkflowStore

_MOST = 1024
FRESH_S = 2.0
"""Time for which an end counts as not stored yet, without a look into the store."""
KEPT_S = 60.0
"""Time after which an end is forgotten: the journal has it, if the store still does not."""
_LOOK_S = 1.0


@dataclass(frozen=True)
class _Heard:
    """A workflow after its run's end, heard at `at` on the monotonic clock."""

    workflow: Workflow
    run: RunFinished
    at: float


class HeardEnds(EndHearingStore):
    """The store, read so that nobody who knows of a run's end sees the run go on: first come the
    ends that this process heard, then, for a run that goes on by the store, the journal."""

    def __init__(self, store: WorkflowStore, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._heard: dict[tuple[Scope, UUID], _Heard] = {}

    def hear(self, before: Workflow, run: RunFinished) -> Workflow:
        """Remember the end of a run until it is stored, and return the workflow after it."""
        after = run_ended(before, run)
        if after is not before:
            end = run.model_copy(update={"entries": run.entries[-1:]})
            self._heard[run.scope, run.workflow_id] = _Heard(after, end, monotonic())
            self._forget_old()
        return after

    @override
    async def accept(self, workflow: Workflow, effects: Sequence[Message]) -> Workflow | None:
        known = await self._store.accept(workflow, effects)
        return known and self._now(known)

    @override
    async def step_once(
        self, cause: Event, consumer: str, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Taken | None:
        return await self._store.step_once(cause, consumer, workflow_id, step)

    @override
    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        heard = self._heard.get((scope, workflow_id))
        if heard is not None:
            await self.end([heard.run])
        return await self._store.change(scope, workflow_id, step)

    @override
    async def end(self, runs: Sequence[RunFinished]) -> Sequence[Workflow]:
        ended = await self._store.end(runs)
        for run in runs:
            self._heard.pop((run.scope, run.workflow_id), None)
        return ended

    @override
    def latest(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        heard = self._heard.get((scope, workflow_id))
        return self._store.latest(scope, workflow_id) if heard is None else heard.workflow

    @override
    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        heard = self._heard.get((scope, workflow_id))
        if heard is not None and monotonic() - heard.at < FRESH_S:
            return heard.workflow
        try:
            stored = await self._store.get(scope, workflow_id)
        except StorageUnavailable:
            if heard is None:
                raise
            return heard.workflow
        if stored is None or stored.state != "running":
            self._heard.pop((scope, workflow_id), None)
            return stored
        if heard is not None:
            return heard.workflow
        ended = await self._read_end(scope, workflow_id)
        return stored if ended is None else self.hear(stored, ended)

    @override
    async def page(self, scope: Scope, limit: int, offset: int) -> WorkflowPage:
        page = await self._store.page(scope, limit, offset)
        heard = {key: one for (of, key), one in self._heard.items() if of == scope}
        listed = tuple(
            summary_of(heard[each.workflow_id].workflow) if each.workflow_id in heard else each
            for each in page.workflows
        )
        return page.model_copy(update={"workflows": listed})

    @override
    async def waiting(self, scope: Scope, limit: int, offset: int) -> ApprovalPage:
        return await self._store.waiting(scope, limit, offset)

    @override
    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Scope, UUID]]:
        return await self._store.due(now, limit)

    async def _read_end(self, scope: Scope, workflow_id: UUID) -> RunFinished | None:
        """Return the run's end from its journal; None if there is none, as far as is known."""
        found: Sequence[StoredMessage | Unreadable] = ()
        with suppress(BusError, TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                found = await self._journal.salvage(catalog.RUN_FINISHED, scope, str(workflow_id))
        stored = (each.message for each in found if isinstance(each, StoredMessage))
        return next((each for each in stored if isinstance(each, RunFinished)), None)

    def _forget_old(self) -> None:
        oldest = monotonic() - KEPT_S
        while self._heard:
            first = next(iter(self._heard))
            if self._heard[first].at > oldest and len(self._heard) <= _MOST:
                return
            del self._heard[first]

    def _now(self, stored: Workflow) -> Workflow:
        heard = self._heard.get((stored.scope, stored.workflow_id))
        return stored if heard is None else heard.workflow
