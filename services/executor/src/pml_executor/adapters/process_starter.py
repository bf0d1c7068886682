"""Starts of sandbox processes, each in a task of its own: a slow or failing one holds up nobody."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from pml_executor.ports import Sandbox, SandboxUnavailable

log = logging.getLogger(__name__)

_BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)


class SandboxProcess(Sandbox, Protocol):
    """A sandbox that can end by itself, and can be ended."""

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        ...

    @property
    def finished(self) -> bool:
        """Whether its program ended well, so that it may be renewed."""
        ...

    async def renew(self) -> bool:
        """Make it ready for another program; whether it is."""
        ...

    async def close(self) -> None:
        """End it and wait until nothing of it is left."""
        ...


class Starts:
    """Hands each process to `ready` and then says `over`; after a failure, that takes a while."""

    def __init__(
        self,
        start: Callable[[], Awaitable[SandboxProcess]],
        ready: Callable[[SandboxProcess], None],
        over: Callable[[], None],
    ) -> None:
        self._start = start
        self._ready = ready
        self._over = over
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures = 0
        self.problem: str | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self) -> None:
        """One more."""
        task = asyncio.create_task(self._start_one(), name="sandbox-start")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def give_up(self) -> None:
        """End those under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._over()

    async def _start_one(self) -> None:
        try:
            sandbox = await self._start()
        except SandboxUnavailable as error:
            log.warning("%s", error)
            await self._back_off(str(error))
            return
        except Exception as error:
            log.exception("starting a sandbox failed")
            await self._back_off(f"{type(error).__name__}: {error}")
            return
        self.problem, self._failures = None, 0
        self._ready(sandbox)

    async def _back_off(self, problem: str) -> None:
        self.problem = problem
        delay = _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
        self._failures += 1
        await asyncio.sleep(delay)
