"""Timeout of a run, whose deadline moves while the bus is unavailable."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pml_executor.domain.deadline import RunTime

_MIN_CHECK_S = 0.001


class TimeIsUp(Exception):
    """The run exceeded its timeout."""


@asynccontextmanager
async def time_limit(time: RunTime) -> AsyncGenerator[None]:
    """Cancel the body once no time remains. Raises TimeIsUp."""
    loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)
    alarm: asyncio.TimerHandle | None = None

    def check() -> None:
        nonlocal alarm
        remaining = time.remaining()
        if remaining <= 0:
            limit.reschedule(loop.time())
        else:
            alarm = loop.call_later(max(remaining, _MIN_CHECK_S), check)

    try:
        async with limit:
            check()
            try:
                yield
            finally:
                if alarm is not None:
                    alarm.cancel()
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeIsUp from None
