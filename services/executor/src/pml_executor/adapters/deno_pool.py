"""Pool of warm sandbox processes, each for the runs of one owner."""

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from opentelemetry import trace
from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.telemetry import metrics, vocabulary
from pml_common.telemetry.instruments import Distribution, Gauge, Values
from pml_common.telemetry.spans import spanning
from pml_executor.adapters.process_starter import ProcessStarter, SandboxProcess
from pml_executor.domain.pool import IdleItems, PoolCapacity
from pml_executor.ports import SandboxPool, SandboxUnavailable

_tracer = trace.get_tracer(__name__)
_processes = Gauge(metrics.SANDBOXES)
_limit = Gauge(metrics.SANDBOX_LIMIT)
_leases = Distribution(metrics.SANDBOX_LEASE)

_RECLAIM_AFTER_S = 1.0
"""Idle time after which one scope's process is ended in favour of a spare for all scopes."""


@dataclass(frozen=True)
class PoolSize:
    """`spares` processes wait warm for any scope; with those in use, and those that wait `idle_s`
    seconds for their own scope, there are at most `max_processes`. A lease waits at most
    `lease_timeout_s` seconds for one."""

    spares: int = 2
    max_processes: int = 10
    lease_timeout_s: float = 15.0
    idle_s: float = 60.0


@dataclass(frozen=True)
class _Owner:
    """A scope's runs that may share a process: those in realms, and those in Workers of their
    own."""

    scope: Scope
    realm: bool


@dataclass(frozen=True, eq=False)
class _Waiter:
    owner: _Owner | None
    granted: asyncio.Future[SandboxProcess] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class DenoPool(SandboxPool):
    """Starts processes ahead of leases, each start in its own task.

    A process is renewed after a valid run and waits for its owner; any other process is killed. Its
    first run has a fresh Worker, whoever leases it; those after it have realms, or each a Worker of
    its own, never both in one process. An owner's lease takes one of its own, else one that is
    being renewed, else a spare; a lease without an owner takes a spare, which is killed after it.
    A spare is replaced when its run is over, or at once when no other is left: a start takes the
    processor from the run that just began.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[SandboxProcess]],
        size: PoolSize,
        realms: Callable[[], bool] = lambda: False,
    ) -> None:
        """`realms` returns whether runs may have realms now."""
        self._starter = ProcessStarter(start, self._add_spare, self._rebalance)
        self._size = size
        self._realms = realms
        self._now = asyncio.get_running_loop().time
        self._spare: deque[SandboxProcess] = deque()
        self._idle: IdleItems[_Owner, SandboxProcess] = IdleItems()
        self._waiters: list[_Waiter] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._renewing: Counter[_Owner] = Counter()
        self._retiring = 0
        self._leased = 0
        self._eviction: asyncio.TimerHandle | None = None
        self._measured = ExitStack()

    async def __aenter__(self) -> Self:
        self._measured.enter_context(_processes.reading(self._states))
        limit = self._size.max_processes
        self._measured.enter_context(_limit.reading(lambda: {(): limit}))
        self._rebalance()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._measured.close()
        self._size = PoolSize(spares=0, max_processes=0)
        if self._eviction is not None:
            self._eviction.cancel()
        while (sandbox := self._idle.oldest(math.inf)) is not None:
            self._retire(sandbox)
        await self._starter.cancel_all()
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)
        await asyncio.gather(*(sandbox.close() for sandbox in self._spare))
        self._spare.clear()

    async def check(self) -> str | None:
        """Return why sandboxes cannot be started, or None."""
        return self._starter.problem

    @override
    @asynccontextmanager
    async def lease(
        self, owner: Scope | None, *, realm: bool = False
    ) -> AsyncGenerator[SandboxProcess]:
        sharing = None if owner is None else _Owner(owner, realm and self._realms())
        async with self._lease(sharing) as sandbox:
            yield sandbox

    @asynccontextmanager
    async def _lease(self, owner: _Owner | None) -> AsyncGenerator[SandboxProcess]:
        sandbox = await self._measured_acquire(owner)
        if not self._spare:
            self._rebalance()
        try:
            yield sandbox
        except BaseException:
            sandbox.kill()
            raise
        finally:
            self._release(owner, sandbox)

    def _add_spare(self, sandbox: SandboxProcess) -> None:
        self._spare.append(sandbox)

    def _release(self, owner: _Owner | None, sandbox: SandboxProcess) -> None:
        self._leased -= 1
        if owner is not None and sandbox.finished and not self._others_waited_longer(owner):
            self._renewing[owner] += 1
            self._spawn(self._renew(owner, sandbox))
        else:
            self._retire(sandbox)

    async def _renew(self, owner: _Owner, sandbox: SandboxProcess) -> None:
        ready = False
        try:
            ready = await sandbox.renew(realm=owner.realm) and self._size.max_processes > 0
        finally:
            self._renewing[owner] -= 1
            if ready:
                self._idle.put(owner, sandbox, self._now())
                self._schedule_eviction()
                self._rebalance()
            else:
                self._retire(sandbox)

    def _retire(self, sandbox: SandboxProcess) -> None:
        """Kill the process immediately, and clean up in the background: the run's end does not wait
        for that."""
        sandbox.kill()
        self._retiring += 1
        self._spawn(self._close(sandbox))

    async def _close(self, sandbox: SandboxProcess) -> None:
        try:
            await sandbox.close()
        finally:
            self._retiring -= 1
            self._rebalance()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="sandbox-end")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _measured_acquire(self, owner: _Owner | None) -> SandboxProcess:
        began, outcome = self._now(), "unavailable"
        with spanning(_tracer, "lease sandbox", {}) as span:
            try:
                sandbox = await self._acquire(owner)
                outcome = "leased"
                return sandbox
            finally:
                span.set_attribute(vocabulary.OUTCOME, outcome)
                _leases.record(self._now() - began, outcome)

    async def _acquire(self, owner: _Owner | None) -> SandboxProcess:
        waiter = _Waiter(owner)
        self._waiters.append(waiter)
        self._serve_waiters()
        if not waiter.granted.done():
            self._rebalance()
        try:
            async with asyncio.timeout(self._size.lease_timeout_s):
                return await waiter.granted
        except BaseException as error:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif waiter.granted.done() and not waiter.granted.cancelled():  # but not received
                self._leased -= 1
                self._retire(waiter.granted.result())
            if isinstance(error, TimeoutError):
                raise SandboxUnavailable(
                    self._starter.problem or "every sandbox is in use"
                ) from None
            raise

    def _pending(self) -> list[_Waiter]:
        """Return the waiters that were neither served nor cancelled."""
        return [waiter for waiter in self._waiters if not waiter.granted.done()]

    def _unserved(self) -> list[_Waiter]:
        """Return the pending waiters for which no process of their own is being renewed."""
        coming, unserved = self._renewing.copy(), list[_Waiter]()
        for waiter in self._pending():
            if waiter.owner is not None and coming[waiter.owner] > 0:
                coming[waiter.owner] -= 1
            else:
                unserved.append(waiter)
        return unserved

    def _others_waited_longer(self, owner: _Owner) -> bool:
        """Whether more waiters precede this owner's than places are about to become free for."""
        others = 0
        for waiter in self._unserved():
            if waiter.owner == owner:
                break
            others += 1
        return others > len(self._starter) + self._retiring

    def _serve_waiters(self) -> None:
        """Serve waiters in FIFO order: with their owner's idle processes, then with spares."""
        for waiter in self._pending():
            while waiter.owner and (sandbox := self._idle.take(waiter.owner)) is not None:
                if self._hand_over(waiter, sandbox):
                    break
        for waiter in self._unserved():
            while self._spare:
                if self._hand_over(waiter, self._spare.popleft()):
                    break

    def _hand_over(self, waiter: _Waiter, sandbox: SandboxProcess) -> bool:
        """Grant a process to a waiter and return True; retire one that has died and return
        False."""
        if not sandbox.alive:
            self._retire(sandbox)
            return False
        self._waiters.remove(waiter)
        self._leased += 1
        waiter.granted.set_result(sandbox)
        return True

    def _rebalance(self) -> None:
        """Serve waiters, start the processes that are needed and fit, and end idle ones to make
        room."""
        self._serve_waiters()
        capacity = self._capacity()
        for _ in range(capacity.to_start):
            self._starter.begin()
        cold = self._now() - _RECLAIM_AFTER_S
        for before in [math.inf] * capacity.short_for_waiters + [cold] * capacity.short_for_spares:
            if (sandbox := self._idle.oldest(before)) is not None:
                self._retire(sandbox)

    def _states(self) -> dict[Values, float]:
        """The number of processes by state; read from another thread."""
        return {
            ("spare",): len(self._spare),
            ("idle",): len(self._idle),
            ("busy",): self._leased + self._renewing.total(),
            ("starting",): len(self._starter),
            ("ending",): self._retiring,
        }

    def _capacity(self) -> PoolCapacity:
        return PoolCapacity(
            max_processes=self._size.max_processes,
            spares=self._size.spares,
            waiting=len(self._unserved()),
            spare=len(self._spare),
            starting=len(self._starter),
            idle=len(self._idle),
            busy=self._leased + self._renewing.total(),
            ending=self._retiring,
        )

    def _schedule_eviction(self) -> None:
        """Schedule the next eviction of expired idle processes, while there are idle ones."""
        if self._eviction is None and len(self._idle) > 0:
            wait_s = min(_RECLAIM_AFTER_S, self._size.idle_s)
            self._eviction = asyncio.get_running_loop().call_later(wait_s, self._evict_idle)

    def _evict_idle(self) -> None:
        self._eviction = None
        while (sandbox := self._idle.oldest(self._now() - self._size.idle_s)) is not None:
            self._retire(sandbox)
        self._rebalance()
        self._schedule_eviction()
