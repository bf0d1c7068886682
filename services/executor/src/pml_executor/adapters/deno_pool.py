"""Sandbox processes kept warm, each for the runs of one owner."""

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pml_common.contracts.scope import Scope
from pml_executor.adapters.process_starter import SandboxProcess, Starts
from pml_executor.domain.idle import Idle
from pml_executor.domain.pool_capacity import Places
from pml_executor.ports import SandboxUnavailable

_COLD_S = 1.0
"""After so long one scope's idle process gives its place to a spare for all."""


@dataclass(frozen=True)
class PoolSize:
    """`spares` processes wait warm for any scope; with those in use, and those that wait `idle_s`
    seconds for their own scope, there are `most`. A lease waits `patience_s` seconds for one."""

    spares: int = 2
    most: int = 10
    patience_s: float = 15.0
    idle_s: float = 60.0


@dataclass(frozen=True, eq=False)
class _Waiter:
    owner: Scope | None
    given: asyncio.Future[SandboxProcess] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class DenoPool:
    """See SandboxPool: processes are started ahead, each start in its own task.

    Whose run is in order is renewed and waits for its owner; any other process is killed. An
    owner's lease takes one of its own, else one that is being renewed, else a spare; one without
    an owner takes a spare, which is killed after it. A spare is replaced when its run is over, or
    at once when no other is left: a start takes the processor from the run that just began.
    """

    def __init__(self, start: Callable[[], Awaitable[SandboxProcess]], size: PoolSize) -> None:
        self._starts = Starts(start, self._spare_is_ready, self._settle)
        self._size = size
        self._now = asyncio.get_running_loop().time
        self._spare: deque[SandboxProcess] = deque()
        self._idle: Idle[Scope, SandboxProcess] = Idle()
        self._waiters: list[_Waiter] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._renewing: Counter[Scope] = Counter()
        self._retiring = 0
        self._leased = 0
        self._tending: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        self._settle()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._size = PoolSize(spares=0, most=0)
        if self._tending is not None:
            self._tending.cancel()
        while (sandbox := self._idle.oldest(math.inf)) is not None:
            self._retire(sandbox)
        await self._starts.give_up()
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)
        await asyncio.gather(*(sandbox.close() for sandbox in self._spare))
        self._spare.clear()

    async def check(self) -> str | None:
        """What is wrong with the sandboxes, or None."""
        return self._starts.problem

    @asynccontextmanager
    async def lease(self, owner: Scope | None) -> AsyncGenerator[SandboxProcess]:
        """See SandboxPool."""
        sandbox = await self._take(owner)
        if not self._spare:
            self._settle()
        try:
            yield sandbox
        except BaseException:
            sandbox.kill()
            raise
        finally:
            self._put_back(owner, sandbox)

    def _spare_is_ready(self, sandbox: SandboxProcess) -> None:
        self._spare.append(sandbox)

    def _put_back(self, owner: Scope | None, sandbox: SandboxProcess) -> None:
        self._leased -= 1
        if owner is not None and sandbox.finished and not self._owed(owner):
            self._renewing[owner] += 1
            self._in_the_background(self._renew(owner, sandbox))
        else:
            self._retire(sandbox)

    async def _renew(self, owner: Scope, sandbox: SandboxProcess) -> None:
        ready = False
        try:
            ready = await sandbox.renew() and self._size.most > 0
        finally:
            self._renewing[owner] -= 1
            if ready:
                self._idle.put(owner, sandbox, self._now())
                self._tend()
                self._settle()
            else:
                self._retire(sandbox)

    def _retire(self, sandbox: SandboxProcess) -> None:
        """Dead at once; that nothing of it is left need not hold up the run's end."""
        sandbox.kill()
        self._retiring += 1
        self._in_the_background(self._close(sandbox))

    async def _close(self, sandbox: SandboxProcess) -> None:
        try:
            await sandbox.close()
        finally:
            self._retiring -= 1
            self._settle()

    def _in_the_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="sandbox-end")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _take(self, owner: Scope | None) -> SandboxProcess:
        waiter = _Waiter(owner)
        self._waiters.append(waiter)
        self._give()
        if not waiter.given.done():
            self._settle()
        try:
            async with asyncio.timeout(self._size.patience_s):
                return await waiter.given
        except BaseException as error:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif waiter.given.done() and not waiter.given.cancelled():  # given, and not taken
                self._leased -= 1
                self._retire(waiter.given.result())
            if isinstance(error, TimeoutError):
                raise SandboxUnavailable(
                    self._starts.problem or "every sandbox is in use"
                ) from None
            raise

    def _open(self) -> list[_Waiter]:
        """Those who wait and have not given up."""
        return [waiter for waiter in self._waiters if not waiter.given.done()]

    def _wanting(self) -> list[_Waiter]:
        """Those for whom nothing is on its way back from a run of their own."""
        coming, wanting = self._renewing.copy(), list[_Waiter]()
        for waiter in self._open():
            if waiter.owner is not None and coming[waiter.owner] > 0:
                coming[waiter.owner] -= 1
            else:
                wanting.append(waiter)
        return wanting

    def _owed(self, owner: Scope) -> bool:
        """Whether others have waited for a place longer than this owner."""
        others = 0
        for waiter in self._wanting():
            if waiter.owner == owner:
                break
            others += 1
        return others > len(self._starts) + self._retiring

    def _give(self) -> None:
        """To whoever waits, the first first, what there is for them."""
        for waiter in self._open():
            while waiter.owner and (sandbox := self._idle.take(waiter.owner)) is not None:
                if self._handed(waiter, sandbox):
                    break
        for waiter in self._wanting():
            while self._spare:
                if self._handed(waiter, self._spare.popleft()):
                    break

    def _handed(self, waiter: _Waiter, sandbox: SandboxProcess) -> bool:
        """Whether the waiter has it; one that died meanwhile is of no use."""
        if not sandbox.alive:
            self._retire(sandbox)
            return False
        self._waiters.remove(waiter)
        self._leased += 1
        waiter.given.set_result(sandbox)
        return True

    def _settle(self) -> None:
        """Hand out what there is, start what is wanted and there is room for, and make room."""
        self._give()
        places = self._places()
        for _ in range(places.starts):
            self._starts.begin()
        cold = self._now() - _COLD_S
        for before in [math.inf] * places.pressing + [cold] * places.missing:
            if (sandbox := self._idle.oldest(before)) is not None:
                self._retire(sandbox)

    def _places(self) -> Places:
        return Places(
            most=self._size.most,
            spares=self._size.spares,
            waiting=len(self._wanting()),
            spare=len(self._spare),
            starting=len(self._starts),
            idle=len(self._idle),
            busy=self._leased + self._renewing.total(),
            ending=self._retiring,
        )

    def _tend(self) -> None:
        """Look after the idle ones from time to time, while there are any."""
        if self._tending is None and len(self._idle) > 0:
            wait_s = min(_COLD_S, self._size.idle_s)
            self._tending = asyncio.get_running_loop().call_later(wait_s, self._look_after)

    def _look_after(self) -> None:
        self._tending = None
        while (sandbox := self._idle.oldest(self._now() - self._size.idle_s)) is not None:
            self._retire(sandbox)
        self._settle()
        self._tend()
