"""Workflows as they are with what the bus has of them and Postgres has not yet."""

import asyncio
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from uuid import UUID

from typing_extensions import override

from pml_common.bus.errors import BusError, Fenced
from pml_common.bus.port import Bus, StoredMessage
from pml_common.contracts import catalog
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.base import Event, Message
from pml_common.contracts.catalog import MessageType
from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.list_cursors import After
from pml_gateway.domain.api.views import ApprovalPage, WorkflowPage, summary_of
from pml_gateway.domain.workflow.accepted_run import accepted_workflow
from pml_gateway.domain.workflow.direct_call import workflow_of_call
from pml_gateway.domain.workflow.workflow import Step, Workflow, run_ended
from pml_gateway.ports import LiveWorkflowStore, Taken, WorkflowStore

_MOST = 1024
FRESH_S = 2.0
"""Time for which an end counts as not stored yet, without a look into the store."""
KEPT_S = 60.0
"""Time after which this process forgets what it knows: the bus has it, if the store still does
not."""
_LOOK_S = 1.0

_Key = tuple[Scope, UUID]


@dataclass(frozen=True)
class _Known:
    """A workflow as the bus has it, known since `at` on the monotonic clock.

    `run` has ended it. `has_row` unless no row of it is known; `is_stored` if its row is known to
    have this state.
    """

    workflow: Workflow
    at: float
    run: RunFinished | None = None
    has_row: bool = True
    is_stored: bool = False


class LiveWorkflows(LiveWorkflowStore):
    """The store, read so that nobody who knows that a workflow was accepted, or that its run has
    ended, sees less: what this process knows comes first, then, where the store has no row or the
    run goes on, what the bus has."""

    def __init__(self, store: WorkflowStore, bus: Bus) -> None:
        self._store = store
        self._bus = bus
        self._known: dict[_Key, _Known] = {}

    @override
    async def accept_run(self, workflow: Workflow, accepted: WorkflowAccepted) -> Workflow | None:
        try:
            await self._bus.publish(accepted)
        except Fenced:
            known = await self.get(workflow.scope, workflow.workflow_id)
            if known is None:
                raise LookupError(f"{workflow.workflow_id} is neither new nor known") from None
            return known
        self._remember(_Known(workflow, monotonic(), has_row=False))
        return None

    @override
    async def add_accepted(self, accepted: Sequence[WorkflowAccepted]) -> None:
        known = (self._known.get((each.scope, each.workflow_id)) for each in accepted)
        await self._add(
            [
                accepted_workflow(each) if now is None else now.workflow
                for each, now in zip(accepted, known, strict=True)
            ]
        )

    @override
    def begin(self, workflow: Workflow) -> None:
        self._remember(_Known(workflow, monotonic(), has_row=False))

    @override
    async def end_calls(self, ended: Sequence[CallEnded]) -> Sequence[Workflow]:
        unknown = [each for each in ended if (each.scope, each.workflow_id) not in self._known]
        if unknown:
            await self._store.add([workflow_of_call(each) for each in unknown])
        return await self.end([each.run for each in ended])

    async def store_late(self) -> None:
        """Store what this process accepted some time ago, if nobody has: its message may be lost
        with its stream. Raises StorageUnavailable."""
        latest = monotonic() - FRESH_S
        await self._add(
            [
                each.workflow
                for each in self._known.values()
                if not each.has_row and each.at < latest
            ]
        )

    @override
    async def settle(self, scope: Scope, workflow_id: UUID) -> None:
        known = self._known.get((scope, workflow_id))
        if known is not None and known.run is not None:
            await self.end([known.run])
        elif known is not None:
            await self._add([known.workflow])
        elif await self._store.get(scope, workflow_id) is None:
            await self._fill([(scope, workflow_id)])

    @override
    async def is_held(self, scope: Scope, workflow_id: UUID) -> bool:
        for of in (catalog.WORKFLOW_ACCEPTED, catalog.RUN_WORKFLOW):
            if await self._bus.salvage(of, scope, str(workflow_id)):
                return True
        return False

    @override
    def hear(self, before: Workflow, run: RunFinished) -> Workflow:
        after = run_ended(before, run)
        if after is not before:
            known = self._known.get((run.scope, run.workflow_id))
            end = run.model_copy(update={"entries": run.entries[-1:]})
            has_row = known is None or known.has_row
            self._remember(_Known(after, monotonic(), end, has_row=has_row))
        return after

    @override
    async def accept(
        self, workflow: Workflow, effects: Sequence[Message], join_at: datetime | None = None
    ) -> Workflow | None:
        stored = await self._store.accept(workflow, effects, join_at)
        known = stored and self._known.get((stored.scope, stored.workflow_id))
        return known.workflow if known else stored

    @override
    async def add(self, workflows: Sequence[Workflow]) -> Set[tuple[Scope, UUID]]:
        return await self._add(workflows)

    @override
    async def step_once(
        self, cause: Event, consumer: str, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Taken | None:
        known = self._known.get((cause.scope, workflow_id))
        if known is not None and not known.has_row:
            await self._add([known.workflow])
        taken = await self._store.step_once(cause, consumer, workflow_id, step)
        if taken is not None:
            return taken
        await self._fill([(cause.scope, workflow_id)])
        return await self._store.step_once(cause, consumer, workflow_id, step)

    @override
    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        if (scope, workflow_id) in self._known:
            await self.settle(scope, workflow_id)
        taken = await self._store.change(scope, workflow_id, step)
        if taken is not None:
            return taken
        await self._fill([(scope, workflow_id)])
        return await self._store.change(scope, workflow_id, step)

    @override
    async def end(self, runs: Sequence[RunFinished]) -> Sequence[Workflow]:
        """End them: a workflow that has no row yet is stored as it is after its end."""
        without_row = {
            key: run_ended(known.workflow, run)
            for run in runs
            if (known := self._known.get(key := (run.scope, run.workflow_id))) is not None
            and not known.has_row
        }
        added = await self._add(list(without_row.values()))
        ended, left = [without_row[key] for key in added], list[RunFinished]()
        for run in runs:
            known = self._known.get(key := (run.scope, run.workflow_id))
            if key in added:
                continue
            if known is not None and known.is_stored:
                ended.append(known.workflow)
            else:
                left.append(run)
        ended += await self._end_stored(left)
        for run in runs:
            self._known.pop((run.scope, run.workflow_id), None)
        return ended

    async def _end_stored(self, runs: Sequence[RunFinished]) -> Sequence[Workflow]:
        """End workflows with rows, and those of which another gateway has stored none yet."""
        if not runs:
            return ()
        ended = list(await self._store.end(runs))
        known = {(each.scope, each.workflow_id) for each in ended}
        missing = {key: run for run in runs if (key := (run.scope, run.workflow_id)) not in known}
        if missing:
            await self._fill(missing)
            ended += await self._store.end(list(missing.values()))
        return ended

    @override
    def latest(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        known = self._known.get((scope, workflow_id))
        return self._store.latest(scope, workflow_id) if known is None else known.workflow

    @override
    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        known = self._known.get((scope, workflow_id))
        if known is not None and known.run is not None and monotonic() - known.at < FRESH_S:
            return known.workflow
        try:
            stored = await self._store.get(scope, workflow_id)
        except StorageUnavailable:
            stored = known.workflow if known else await self._accepted_now(scope, workflow_id)
            if stored is None:
                raise
        else:
            if stored is not None and stored.state != "running":
                self._known.pop((scope, workflow_id), None)
        if stored is None and known is not None:
            stored = known.workflow
        elif stored is None:
            accepted = await self._accepted_now(scope, workflow_id)
            stored = accepted or await self._store.get(scope, workflow_id)
        if stored is None or stored.state != "running":
            return stored
        if known is not None and known.run is not None:
            return known.workflow
        ended = await self._ended_now(scope, workflow_id)
        return stored if ended is None else self.hear(stored, ended)

    @override
    async def joinable(self, scope: Scope, call_digest: str) -> Workflow | None:
        found = await self._store.joinable(scope, call_digest)
        return None if found is None else await self.get(scope, found.workflow_id)

    @override
    async def deliver(self, scope: Scope, workflow_id: UUID) -> None:
        await self._store.deliver(scope, workflow_id)

    @override
    async def page(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> WorkflowPage:
        own = {key: known for key, known in self._known.items() if key[0] == scope}
        await self._add([known.workflow for known in own.values() if not known.has_row])
        page = await self._store.page(scope, limit, offset, after)
        ended = {key[1]: known.workflow for key, known in own.items() if known.run is not None}
        listed = tuple(
            summary_of(ended[each.workflow_id])
            if each.workflow_id in ended and each.deleted_at is None
            else each
            for each in page.workflows
        )
        return page.model_copy(update={"workflows": listed})

    @override
    async def waiting(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> ApprovalPage:
        return await self._store.waiting(scope, limit, offset, after)

    @override
    async def forget(self, ended_before: datetime, limit: int) -> int:
        return await self._store.forget(ended_before, limit)

    @override
    async def due(self, scope: Scope, now: datetime, limit: int) -> Sequence[UUID]:
        return await self._store.due(scope, now, limit)

    async def _add(self, workflows: Sequence[Workflow]) -> Set[_Key]:
        """Store workflows that have no row; return the keys of those that had none. What is known
        of a workflow that runs is in the store from now on."""
        if not workflows:
            return frozenset()
        added = await self._store.add(workflows)
        for workflow in workflows:
            key = workflow.scope, workflow.workflow_id
            known = self._known.get(key)
            if known is not None and known.run is None:
                del self._known[key]
            elif known is not None:
                is_stored = key in added and workflow is known.workflow
                self._known[key] = replace(known, has_row=True, is_stored=is_stored)
        return added

    async def _fill(self, keys: Iterable[_Key]) -> None:
        """Store the workflows that the bus has. One that it has not may have got its row meanwhile:
        look into the store again. Raises BusError."""
        found = [await self._accepted(*key) for key in keys]
        await self._add([each for each in found if each is not None])

    async def _accepted(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """Return a workflow as it was accepted, until all have handled that. Raises BusError."""
        accepted = await self._first(catalog.WORKFLOW_ACCEPTED, scope, workflow_id)
        return accepted_workflow(accepted) if isinstance(accepted, WorkflowAccepted) else None

    async def _accepted_now(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """Return a workflow as it was accepted. Raises StorageUnavailable where that is not known
        within a second."""
        try:
            async with asyncio.timeout(_LOOK_S):
                return await self._accepted(scope, workflow_id)
        except (BusError, TimeoutError) as error:
            why = f"{workflow_id} is not stored, and NATS does not tell whether it was accepted"
            raise StorageUnavailable(f"{why}: {error!r}") from error

    async def _ended_now(self, scope: Scope, workflow_id: UUID) -> RunFinished | None:
        """Return the run's end from its journal; None if there is none, as far as is known."""
        with suppress(BusError, TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                ended = await self._first(catalog.RUN_FINISHED, scope, workflow_id)
                return ended if isinstance(ended, RunFinished) else None
        return None

    async def _first(
        self, of: MessageType[Message], scope: Scope, workflow_id: UUID
    ) -> Message | None:
        """Return the first believed message of a type about a workflow. Raises BusError."""
        found = await self._bus.salvage(of, scope, str(workflow_id))
        return next((each.message for each in found if isinstance(each, StoredMessage)), None)

    def _remember(self, known: _Known) -> None:
        key, oldest = (known.workflow.scope, known.workflow.workflow_id), known.at - KEPT_S
        self._known.pop(key, None)
        self._known[key] = known
        while len(self._known) > 1:
            first = next(iter(self._known))
            if self._known[first].at > oldest and len(self._known) <= _MOST:
                return
            del self._known[first]
