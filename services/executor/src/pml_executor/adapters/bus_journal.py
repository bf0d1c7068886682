"""A run's journal on the bus, one writer at a time: its appends are the executor's events about the
workflow."""

import asyncio
import logging
from collections.abc import Sequence
from uuid import uuid4

from typing_extensions import override

from pml_common.bus import codec
from pml_common.bus.errors import BusUnavailable, Fenced, MessageLost, StaleServer
from pml_common.bus.port import Bus
from pml_common.bus.run_journal import StoredRun, mark_of, read_run, subjects_of
from pml_common.contracts import ids
from pml_common.contracts.executor import (
    JournalAppend,
    ParkMark,
    RunFinished,
    RunWorkflow,
    TraceRecorded,
    WorkflowParked,
)
from pml_common.contracts.trace import TraceEvent
from pml_executor.domain.entry_queue import EntryQueue
from pml_executor.domain.finished import without_results
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.parking import parked_under
from pml_executor.ports import JournalStore

log = logging.getLogger(__name__)

_RETRY_DELAYS_S = (0.1, 0.3, *(1.0,) * 23)
"""Short delays: once the bus is back, waiting counts as the run's time again."""
LAG_DELAYS_S = (0.1, 0.3, 1.0, 2.0, 2.0, 2.0)
"""Waits for a replica of the stream that lags behind what was stored; their number is also that of
the tolerated refusals by a server that is behind."""


FLUSH_AFTER_S = 0.075
"""Time after which an entry is stored for those who watch the run, if nothing awaits it earlier."""
_MAX_APPEND_BYTES = codec.INLINE_LIMIT // 2
_CLOSES_WITHIN_S = 1.0


class BusJournal(JournalStore):
    """Appends in order, each append naming the last sequence seen; one is under way at a time.
    Entries are stored together, when an append is awaited, when there are enough of them for a
    message, or `flush_after_s` after the first. An append that has begun is finished even if its
    caller is cancelled."""

    def __init__(
        self, bus: Bus, command: RunWorkflow, *, flush_after_s: float = FLUSH_AFTER_S
    ) -> None:
        self._bus = bus
        self._command = command
        self._flush_after_s = flush_after_s
        # Unique per executor, so that the server never takes one executor's append for another's.
        self._attempt = uuid4()
        self._appends = 0
        self._last = 0
        self._journal = RunJournal()
        self._queue = EntryQueue(_MAX_APPEND_BYTES)
        self._mark: ParkMark | None = None
        self._finish: RunFinished | WorkflowParked | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure: BaseException | None = None
        self._closed = False

    @override
    def begin(self, first: TraceEvent) -> RunJournal:
        self.note(first)
        return self._journal

    @override
    async def open(self, first: TraceEvent) -> RunJournal:
        if self._command.parked_under is not None:
            await self._take_over(first)
            return self._journal
        try:
            await self._store(self._event((first,)))
        except Fenced:
            await self._take_over(first)
        else:
            self._journal.add((first,))
        return self._journal

    @property
    @override
    def unstored(self) -> int:
        return self._queue.noted - self._queue.stored

    @override
    def note(self, entry: TraceEvent, size: int = 0) -> None:
        self._require_no_failure()
        self._journal.add((entry,))
        self._queue.put(entry, size)
        self._flush_in_time()

    @override
    async def append(self) -> None:
        target = self._queue.noted
        self._require_no_failure()
        while self._queue.stored < target or self._mark or self._finish:
            await asyncio.shield(self._flush())
            self._require_no_failure()

    @override
    async def resume(self, mark: ParkMark) -> None:
        self._mark = mark
        await self.append()
        self._journal.marks.append(mark)

    @override
    async def finish(self, last: RunFinished | WorkflowParked) -> None:
        self._finish = last
        await self.append()

    @override
    async def close(self) -> None:
        self._closed = True
        self._stop_timer()
        if self._failure is not None or not self.unstored:
            return
        storing = asyncio.create_task(self.append())
        await asyncio.wait({storing}, timeout=_CLOSES_WITHIN_S)
        if self.unstored:
            workflow = self._command.workflow_id
            log.info("workflow %s: %d entries are not stored", workflow, self.unstored)
        if self._flushing is not None:
            self._flushing.cancel()
        await asyncio.gather(storing, return_exceptions=True)

    def _require_no_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _flush_in_time(self) -> None:
        if self._queue.is_full:
            self._flush()
        elif self._timer is None and self._flushing is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._flush_after_s, self._flush)

    def _flush(self) -> asyncio.Task[None]:
        """Begin the next append; return it, or the one that is under way."""
        self._stop_timer()
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._store_next(), name="append")
            self._flushing.add_done_callback(_retrieve_error)
        return self._flushing

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _store_next(self) -> None:
        batch = self._queue.take()
        mark, finish = (self._mark, self._finish) if self._queue.is_empty else (None, None)
        try:
            await self._store(self._event(batch, mark, finish))
        except BaseException as error:
            self._failure = error  # raised to those that wait, and that come next
            raise
        finally:
            self._flushing = None
        self._queue.stored += len(batch)
        if self._mark is mark:
            self._mark = None
        if self._finish is finish:
            self._finish = None
        if not self._queue.is_empty and not self._closed:
            self._flush_in_time()

    async def _take_over(self, first: TraceEvent) -> None:
        """Read the journal and fence its earlier writer by an append: an empty one, or `first`
        where nothing there is the executor's. A run that has ended, or was parked under this same
        command, is not fenced: a later writer is another command's."""
        stored = await self._read_up_to_here()
        workflow = self._command.workflow_id
        for each in stored.foreign:
            log.warning("workflow %s: no part of its journal: %s", workflow, each)
        marks, new = _marks(stored), () if stored.entries else (first,)
        self._last = stored.last
        self._journal = RunJournal(stored.entries or new, marks)
        over = self._journal.closed or parked_under(self._command, marks)
        if not over:
            await self._store(self._event(new))
            log.info("workflow %s: taken over with %d entries", workflow, len(stored.entries))

    async def _store(self, event: JournalAppend) -> None:
        """Append once; retry while it is not known whether it was stored. Raises
        MessageLost."""
        behind = 0
        for delay in _RETRY_DELAYS_S:
            try:
                self._last = await self._publish(event)
            except BusUnavailable as error:
                behind += isinstance(error, StaleServer)
                if behind > len(LAG_DELAYS_S):
                    await self._read_up_to_here()
                await asyncio.sleep(delay)
            else:
                return
        self._last = await self._publish(event)

    async def _publish(self, event: JournalAppend) -> int:
        try:
            return await self._bus.publish(event)
        except Fenced:
            # Perhaps by ourselves: an earlier attempt may have been stored and its reply lost.
            for sequence, append in (await self._read_up_to_here()).appends[-1:]:
                if append == event:
                    return sequence
            raise

    async def _read_up_to_here(self) -> StoredRun:
        """Return the journal, at least to our own last append and to the park that the command
        names. Raises MessageLost without these."""
        stored = await self.read()
        for delay in LAG_DELAYS_S:
            if self._cut(stored) is None:
                break
            await asyncio.sleep(delay)
            stored = await self.read()
        if (cut := self._cut(stored)) is not None:
            subjects = subjects_of(self._command.scope, self._command.workflow_id)
            raise MessageLost(subjects, self._last or stored.last, cut)
        return stored

    def _cut(self, stored: StoredRun) -> str | None:
        """Return which part is missing at the journal's end; None if it is whole."""
        if stored.last < self._last:
            return f"it was stored, and {stored.last} is the last one there now"
        under = self._command.parked_under
        if under is None or any(mark.command_id == under for mark in _marks(stored)):
            return None
        return f"the run was parked by command {under}, and its journal was cut off before that"

    async def read(self) -> StoredRun:
        """Return the journal as it is stored. Raises Unreadable."""
        run = self._command
        stored = await read_run(self._bus, run.scope, run.workflow_id, run.grant.journal)
        stored.require_whole()
        return stored

    def _event(
        self,
        entries: Sequence[TraceEvent],
        mark: ParkMark | None = None,
        finish: RunFinished | WorkflowParked | None = None,
    ) -> JournalAppend:
        if isinstance(finish, RunFinished):
            entries = without_results(entries)
        if finish is not None:
            return finish.model_copy(update={"entries": tuple(entries), "previous": self._last})
        self._appends += 1
        return TraceRecorded(
            event_id=ids.effect_id(
                self._command.workflow_id, f"trace-recorded/{self._attempt}/{self._appends}"
            ),
            scope=self._command.scope,
            workflow_id=self._command.workflow_id,
            entries=tuple(entries),
            mark=mark,
            previous=self._last,
        )


def _marks(stored: StoredRun) -> list[ParkMark]:
    return [mark for _, append in stored.appends if (mark := mark_of(append)) is not None]


def _retrieve_error(append: asyncio.Task[None]) -> None:
    """Mark the error of an append as seen: the journal keeps it."""
    if not append.cancelled():
        append.exception()
