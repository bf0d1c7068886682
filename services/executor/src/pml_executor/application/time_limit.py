"""The end of a run's time, which moves while the bus is away."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pml_executor.domain.deadline import RunTime

_SOONEST_S = 0.01


class TimeIsUp(Exception):
    """The run took longer than it may."""


@asynccontextmanager
async def time_limit(time: RunTime) -> AsyncGenerator[None]:
    """Stop the block once no time is left. Raises TimeIsUp."""
    loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)
    alarm: asyncio.TimerHandle | None = None

    def look() -> None:
        nonlocal alarm
        left = time.left()
        if left <= 0:
            limit.reschedule(loop.time())
        else:
            alarm = loop.call_later(max(left, _SOONEST_S), look)

    try:
        async with limit:
            look()
            try:
                yield
            finally:
                if alarm is not None:
                    alarm.cancel()
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeIsUp from None
