"""A pool of processes, shared fairly among scopes; a process is killed when its work takes too
long."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from pml_analyzer.adapters.child_process import ChildCommand, ChildLost, ChildProcess
from pml_analyzer.adapters.scope_limiter import ScopeLimiter
from pml_analyzer.ports import WorkersUnavailable
from pml_common.contracts.scope import Scope

log = logging.getLogger(__name__)

T = TypeVar("T")

_POLL_S: Final = 0.05
_REQUESTS_PER_MEMORY_CHECK: Final = 64
"""Number of requests between two checks of a process's memory."""

_CLOCK_FACTOR: Final = 10
"""Factor between the deadline in processor time and that by the clock: work may have to wait for a
processor."""


class OutOfTime(Exception):
    """A piece of work exceeded its deadline; its process was killed."""


@dataclass(frozen=True)
class WorkerLimits:
    """`deadline_s` is processor time for one piece of work. `spares` processes are started ahead of
    the first; further ones on demand, up to `processes`. A process is worn after `max_requests`
    requests, or at `resident_mib` of memory."""

    deadline_s: float = 2.0
    processes: int = 2
    per_scope: int = 1
    spares: int = 1
    max_requests: int = 20_000
    resident_mib: int = 512


@asynccontextmanager
async def worker_pool(
    what: str, command: ChildCommand, limits: WorkerLimits
) -> AsyncGenerator["WorkerPool"]:
    """Run a pool until the context exits; its spares start in the background."""
    pool = WorkerPool(what, command, limits)
    try:
        yield pool
    finally:
        await pool.close()


class WorkerPool:
    """At most `processes` of one kind, started on demand, replaced when lost or worn."""

    def __init__(self, what: str, command: ChildCommand, limits: WorkerLimits) -> None:
        self._what = what
        self._command = command
        self._limits = limits
        self._limiter = ScopeLimiter(limits.per_scope)
        self._slots = asyncio.Semaphore(limits.processes)
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._starting = [asyncio.create_task(self._start()) for _ in range(limits.spares)]
        self._start_failure: str | None = None

    @property
    def deadline_s(self) -> float:
        """Processor time for one piece of work."""
        return self._limits.deadline_s

    @property
    def busy(self) -> tuple[int, ...]:
        """The ids of the processes at work."""
        return tuple(child.pid for child in self._busy)

    async def health(self) -> str | None:
        """Return why no process can be started, or None."""
        return self._start_failure

    async def run(self, scope: Scope, talk: Callable[[ChildProcess], Awaitable[T]]) -> T:
        """Run a conversation with a process; retried once if that process is lost.

        Raises OutOfTime, ChildLost when the second is lost, too, ScopeBusy, WorkersUnavailable.
        """
        async with self._limiter.of(scope), self._slots:
            try:
                return await self._attempt(talk)
            except ChildLost:  # possibly before this request
                return await self._attempt(talk)

    async def close(self) -> None:
        """End all processes."""
        for starting in self._starting:
            starting.cancel()
        for starting in self._starting:
            with suppress(asyncio.CancelledError, ChildLost):
                await (await starting).close()
        for child in (*self._idle, *self._busy):
            await child.close()

    async def _attempt(self, talk: Callable[[ChildProcess], Awaitable[T]]) -> T:
        child = await self._take()
        self._busy.add(child)
        is_sound = False
        try:
            result = await self._within(child, talk)
            is_sound = not self._is_worn(child)
            return result
        finally:
            self._busy.discard(child)
            if is_sound:
                self._idle.append(child)
            else:
                child.kill()
                self._starting.append(asyncio.create_task(self._start(instead_of=child)))

    async def _within(self, child: ChildProcess, talk: Callable[[ChildProcess], Awaitable[T]]) -> T:
        """Run a conversation within the deadline."""
        deadline, clock = self._limits.deadline_s, asyncio.get_running_loop().time
        began, until = child.processor_s(), clock() + _CLOCK_FACTOR * deadline
        child.limit_processor_time(deadline)
        talking = asyncio.ensure_future(talk(child))
        left = deadline
        try:
            while not (await asyncio.wait({talking}, timeout=left))[0]:
                used = child.processor_s()
                spent = deadline if began is None or used is None else used - began
                if spent >= deadline or clock() >= until:
                    raise OutOfTime(f"{self._what}: no end within {deadline:g} s")
                left = max(deadline - spent, _POLL_S)
            return talking.result()
        finally:
            talking.cancel()

    def _is_worn(self, child: ChildProcess) -> bool:
        limits = self._limits
        is_large = (
            child.requests % _REQUESTS_PER_MEMORY_CHECK == 0
            and child.resident_mib >= limits.resident_mib
        )
        return is_large or child.requests >= limits.max_requests

    async def _take(self) -> ChildProcess:
        """Return a warm process. Raises WorkersUnavailable."""
        while self._idle:
            child = self._idle.pop()
            if child.is_alive:
                return child
            await child.close()
        starting = self._starting.pop() if self._starting else None
        if starting is None or (starting.done() and starting.exception() is not None):
            starting = asyncio.create_task(self._start())
        try:
            return await asyncio.shield(starting)
        except ChildLost as lost:
            raise WorkersUnavailable(f"{self._what}: {lost}") from lost
        except asyncio.CancelledError:
            self._starting.append(starting)
            raise

    async def _start(self, instead_of: ChildProcess | None = None) -> ChildProcess:
        if instead_of is not None:
            await instead_of.close()
        try:
            child = await ChildProcess.start(self._command)
        except ChildLost as lost:
            self._start_failure = str(lost)
            log.warning("%s: %s", self._what, lost)
            raise
        self._start_failure = None
        return child
