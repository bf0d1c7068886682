"""Sandbox processes kept warm, each for one run."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from pml_executor.ports import Sandbox, SandboxUnavailable

log = logging.getLogger(__name__)

_BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)


class SandboxProcess(Sandbox, Protocol):
    """A sandbox that can end by itself, and can be ended."""

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        ...

    async def close(self) -> None:
        """End it and wait until nothing of it is left."""
        ...


@dataclass(frozen=True)
class PoolSize:
    """`spares` processes wait warm; with those in use there are `most`. A lease waits
    `patience_s` seconds for one."""

    spares: int = 2
    most: int = 10
    patience_s: float = 15.0


class DenoPool:
    """See SandboxPool: single-use processes, started ahead, each start in its own task.

    A process is replaced when its run is over, or at once when no spare is left: a start takes
    the processor from the run that just began.
    """

    def __init__(self, start: Callable[[], Awaitable[SandboxProcess]], size: PoolSize) -> None:
        self._start = start
        self._size = size
        self._changed = asyncio.Condition()
        self._spare: deque[SandboxProcess] = deque()
        self._starting: set[asyncio.Task[None]] = set()
        self._retiring: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._leased = 0
        self._failures = 0
        self._problem: str | None = None

    async def __aenter__(self) -> Self:
        self._refill()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._size = PoolSize(spares=0, most=0)
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, *self._retiring, return_exceptions=True)
        await asyncio.gather(*(sandbox.close() for sandbox in self._spare))
        self._spare.clear()

    async def check(self) -> str | None:
        """What is wrong with the sandboxes, or None."""
        return self._problem

    @asynccontextmanager
    async def lease(self) -> AsyncGenerator[SandboxProcess]:
        """See SandboxPool."""
        sandbox = await self._take()
        self._leased += 1
        if not self._spare:
            self._refill()
        try:
            yield sandbox
        finally:
            # Dead at once; that nothing of it is left need not hold up the run's end.
            sandbox.kill()
            retiring = asyncio.create_task(self._retire(sandbox), name="sandbox-retire")
            self._retiring.add(retiring)
            retiring.add_done_callback(self._retiring.discard)

    async def _retire(self, sandbox: SandboxProcess) -> None:
        try:
            await sandbox.close()
        finally:
            self._leased -= 1
            self._refill()

    async def _take(self) -> SandboxProcess:
        self._waiting += 1
        try:
            async with asyncio.timeout(self._size.patience_s):
                while True:
                    async with self._changed:
                        if not self._spare:
                            self._refill()
                        await self._changed.wait_for(lambda: self._spare)
                        sandbox = self._spare.popleft()
                    if sandbox.alive:
                        return sandbox
                    await sandbox.close()
        except TimeoutError:
            raise SandboxUnavailable(self._problem or "every sandbox is in use") from None
        finally:
            self._waiting -= 1

    def _refill(self) -> None:
        """Start what is wanted and there is room for."""
        idle = len(self._spare) + len(self._starting)
        wanted = self._size.spares + self._waiting - idle
        room = self._size.most - self._leased - idle
        for _ in range(min(wanted, room)):
            task = asyncio.create_task(self._start_one(), name="sandbox-start")
            self._starting.add(task)
            task.add_done_callback(self._started)

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        self._refill()

    async def _back_off(self, problem: str) -> None:
        self._problem = problem
        delay = _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
        self._failures += 1
        await asyncio.sleep(delay)

    async def _start_one(self) -> None:
        """One more spare; after a failure, hold the place for a while."""
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
        self._problem, self._failures = None, 0
        async with self._changed:
            self._spare.append(sandbox)
            self._changed.notify()
