"""Limits on the share of a common resource that one scope may use."""

import asyncio
from collections.abc import AsyncGenerator, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from pml_analyzer.ports import ScopeBusy
from pml_common.contracts.scope import Scope

_MAX_WAITING: Final = 4
"""Number of waiters of a scope without a time limit."""

_GRACE_S: Final = 0.5
"""Time in seconds after which long work limits the waiters of its scope to that number."""


@dataclass
class _Share:
    """One scope's share: `at_work` by start time, oldest first; `waiting` count."""

    slots: asyncio.Semaphore
    at_work: list[float] = field(default_factory=list[float])
    waiting: int = 0


class ScopeLimiter:
    """Runs at most `per_scope` pieces of work of a scope at a time; others wait, in order.

    Behind long work only a short line may wait: the rest is refused with ScopeBusy and redelivered,
    so that one scope's messages do not fill the slots of all scopes.
    """

    def __init__(
        self, per_scope: int, *, max_waiting: int = _MAX_WAITING, grace_s: float = _GRACE_S
    ) -> None:
        self._per_scope = per_scope
        self._max_waiting = max_waiting
        self._grace_s = grace_s
        self._shares: dict[Scope, _Share] = {}

    @property
    def scopes(self) -> Set[Scope]:
        """The scopes that have a turn or wait for one."""
        return self._shares.keys()

    @asynccontextmanager
    async def of(self, scope: Scope) -> AsyncGenerator[None]:
        """Hold a turn until the context exits. Raises ScopeBusy."""
        clock = asyncio.get_running_loop().time
        share = self._shares.get(scope)
        if share is None:
            share = self._shares[scope] = _Share(asyncio.Semaphore(self._per_scope))
        try:
            await self._wait(scope, share, clock())
            began = clock()
            share.at_work.append(began)
            try:
                yield
            finally:
                share.at_work.remove(began)
                share.slots.release()
        finally:
            if not share.at_work and not share.waiting:
                self._shares.pop(scope, None)

    async def _wait(self, scope: Scope, share: _Share, now: float) -> None:
        patience = None
        if share.waiting >= self._max_waiting:
            oldest = min(share.at_work, default=now)
            patience = max(0.0, oldest + self._grace_s - now)
        share.waiting += 1
        try:
            async with asyncio.timeout(patience):
                await share.slots.acquire()
        except TimeoutError as error:
            raise ScopeBusy(f"{scope} has long work going on, and more waiting") from error
        finally:
            share.waiting -= 1
