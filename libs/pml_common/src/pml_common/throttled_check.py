"""Throttling of expensive health checks."""

import asyncio
from collections.abc import Awaitable, Callable

WRITE_EVERY_S = 10.0
"""The interval of write checks."""

_AGAIN_S = 1.0
_WAIT_S = 1.0


class ThrottledCheck:
    """A check that runs at most every `every_s` seconds, every second while it finds a problem;
    calls in between return the last result. A call waits at most a second: the result of a longer
    check is returned by the next call.
    """

    def __init__(
        self,
        check: Callable[[], Awaitable[str | None]],
        every_s: float = WRITE_EVERY_S,
        *,
        within_s: float = 5.0,
    ) -> None:
        """Wrap a check; one that takes more than `within_s` seconds counts as failed."""
        self.found: str | None = None
        self._check = check
        self._every_s = every_s
        self._within_s = within_s
        self._due = 0.0
        self._checking: asyncio.Task[None] | None = None

    async def __call__(self) -> str | None:
        """Return the current or last problem, or None."""
        if self._checking is None or self._checking.done():
            if asyncio.get_running_loop().time() < self._due:
                return self.found
            self._checking = asyncio.create_task(self._run_check(), name="write check")
        done, _ = await asyncio.wait({self._checking}, timeout=_WAIT_S)
        for checked in done:
            checked.result()  # an exception is a bug: raise it
        return self.found

    async def _run_check(self) -> None:
        try:
            async with asyncio.timeout(self._within_s):
                self.found = await self._check()
        except TimeoutError:
            self.found = f"no answer within {self._within_s:g} s"
        wait_s = self._every_s if self.found is None else min(_AGAIN_S, self._every_s)
        self._due = asyncio.get_running_loop().time() + wait_s
