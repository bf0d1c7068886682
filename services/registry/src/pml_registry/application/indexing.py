"""An external vector index: brought up to date by the changes noted in Postgres, and rebuilt."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pml_common.errors import Retryable
from pml_common.telemetry import metrics
from pml_common.telemetry.instruments import Gauge
from pml_registry.ports.vectors import (
    IndexTurn,
    IndexUnavailable,
    IndexWork,
    Point,
    PointKey,
    ReindexRun,
    StoredModel,
    VectorIndex,
)

log = logging.getLogger(__name__)
_backlog = Gauge(metrics.INDEX_BACKLOG)

_POLL_S: Final = 0.5
_LONGEST_WAIT_S: Final = 15.0
_REBUILD: Final = "pml"
"""The requester of a rebuild for a model that the index does not have."""


@dataclass(frozen=True)
class IndexUpkeep:
    """Tells an index what changed, a batch in a turn. Any number of processes may do so: one has
    the turn, reads what is stored now, and nobody writes an older state after it."""

    work: IndexWork
    index: VectorIndex
    batch: int = 128

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Keep the index up to date; while it is away, try seldom."""
        wait_s = _POLL_S
        while True:
            try:
                await self.catch_up()
                wait_s = _POLL_S
            except Retryable as outage:
                wait_s = min(2.0 * wait_s, _LONGEST_WAIT_S)
                log.warning("the vector index is updated in %g s: %s", wait_s, outage)
            except Exception:
                wait_s = _LONGEST_WAIT_S
                log.exception("the vector index is updated in %g s", wait_s)
            await self._measure()
            await sleep(wait_s)

    async def _measure(self) -> None:
        """Count the changes that wait, if somebody collects metrics."""
        if _backlog.is_on:
            try:
                _backlog.set(await self.work.pending())
            except Retryable as outage:
                log.warning("the changes that wait for the vector index are not known: %s", outage)

    async def catch_up(self) -> None:
        """Do all that there is to do. Raises StorageUnavailable and IndexUnavailable."""
        try:
            while await self.step():
                pass
        except IndexUnavailable as outage:
            await self._note(str(outage))
            raise

    async def step(self) -> bool:
        """Do a batch of each kind; return whether there may be more to do."""
        async with self.work.turn() as turn:
            if turn is None:
                return False
            models = await turn.models()
            run = await self._run(turn, models)
            drained = await self._drain(turn, models)
            if run is None:
                return drained
            await turn.save(await self._rebuild(turn, run, models))
            return True

    async def _drain(self, turn: IndexTurn, models: Sequence[StoredModel]) -> bool:
        changes = await turn.changes(self.batch)
        known = {each.model.name for each in models}
        upserts: dict[str, list[Point]] = defaultdict(list)
        deletes: dict[str, list[PointKey]] = defaultdict(list)
        for each in changes:
            if each.model in known and each.vector is not None:
                upserts[each.model].append(Point(each.key, each.vector))
            elif each.model in known:
                deletes[each.model].append(each.key)
        for model, points in upserts.items():
            await self.index.upsert(model, points)
        for model, keys in deletes.items():
            await self.index.delete(model, keys)
        if changes:
            await turn.forget(changes)
        return bool(changes)

    async def _run(self, turn: IndexTurn, models: Sequence[StoredModel]) -> ReindexRun | None:
        """Return the rebuild that is under way; begin one for a model that the index does not
        have. Its models have a place in the index, and those that miss vectors are not searched
        until it has them."""
        run = await turn.run()
        if run is None and all(each.indexed for each in models):
            return None
        run = run or await turn.begin(_REBUILD)
        created = [each for each in models if await self.index.prepare(each.model)]
        incomplete = {each.model.name for each in created}
        if run.model is None:
            stored = {each.model.name: await turn.count(each.model.name) for each in models}
            for model, count in stored.items():
                if await self.index.count(model) < count:
                    incomplete.add(model)
            run = _with(run, total=sum(stored.values()))
        for model in incomplete:
            await turn.set_indexed(model, indexed=False)
        return run

    async def _rebuild(
        self, turn: IndexTurn, run: ReindexRun, models: Sequence[StoredModel]
    ) -> ReindexRun:
        """Do a batch; after the last one of a model, go to the next."""
        names = [each.model.name for each in models]
        run = _with(run, problem=None)
        if run.model not in names:
            return _at(run, names[0] if names else None)
        if not run.checking:
            return await self._store(turn, run, run.model)
        run = await self._check(turn, run, run.model)
        if run.checked_to is not None or run.model is None:
            return run
        await turn.set_indexed(run.model, indexed=True)
        following = names[names.index(run.model) + 1 :]
        return _at(run, following[0] if following else None)

    async def _store(self, turn: IndexTurn, run: ReindexRun, model: str) -> ReindexRun:
        points = await turn.points(model, run.stored_to, self.batch)
        await self.index.upsert(model, points)
        run = _with(run, stored=run.progress.stored + len(points))
        if len(points) < self.batch:
            return replace(run, checking=True)
        return replace(run, stored_to=points[-1].key)

    async def _check(self, turn: IndexTurn, run: ReindexRun, model: str) -> ReindexRun:
        keys, following = await self.index.keys(model, run.checked_to, self.batch)
        unknown = await turn.unknown(model, keys) if keys else ()
        await self.index.delete(model, unknown)
        run = _with(run, removed=run.progress.removed + len(unknown))
        return replace(run, checked_to=following)

    async def _note(self, problem: str) -> None:
        """Show why a rebuild does not go on."""
        async with self.work.turn() as turn:
            run = None if turn is None else await turn.run()
            if turn is not None and run is not None:
                await turn.save(_with(run, problem=problem))


def _with(run: ReindexRun, **progress: object) -> ReindexRun:
    return replace(run, progress=run.progress.model_copy(update=progress))


def _at(run: ReindexRun, model: str | None) -> ReindexRun:
    """The rebuild at the start of a model; without one it is done."""
    ended = _with(run, state="done") if model is None else run
    return ReindexRun(ended.progress, model)
