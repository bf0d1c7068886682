"""Background work."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager

from pml_common.errors import Retryable

log = logging.getLogger(__name__)


@asynccontextmanager
async def background(works: Sequence[Coroutine[object, object, None]]) -> AsyncGenerator[None]:
    """Run all of it as tasks until the context exits."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_periodically(
    work: Callable[[], Awaitable[None]],
    every_s: float,
    *,
    first_after_s: float = 0.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Repeat the work every `every_s` seconds; failures are logged and retried."""
    await sleep(first_after_s)
    while True:
        try:
            await work()
        except Retryable as outage:
            log.warning("trying again in %g s: %s", every_s, outage)
        except Exception:
            log.exception("trying again in %g s", every_s)
        await sleep(every_s)


async def run_until_done(
    work: Callable[[], Awaitable[None]],
    again_after_s: float,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Do the work once; a failure is logged, and an outage tried again after that time."""
    while True:
        try:
            return await work()
        except Retryable as outage:
            log.warning("trying again in %g s: %s", again_after_s, outage)
        except Exception:
            log.exception("not done")
            return
        await sleep(again_after_s)
