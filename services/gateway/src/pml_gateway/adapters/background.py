"""Work that goes on beside everything else."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager

from pml_common.errors import Retryable

log = logging.getLogger(__name__)


@asynccontextmanager
async def background(works: Sequence[Coroutine[object, object, None]]) -> AsyncGenerator[None]:
    """Do all of it for as long as the block runs."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def keep_doing(work: Callable[[], Awaitable[None]], every_s: float) -> None:
    """Do it again and again; what goes wrong is reported and tried again."""
    while True:
        try:
            await work()
        except Retryable as outage:
            log.warning("trying again in %g s: %s", every_s, outage)
        except Exception:
            log.exception("trying again in %g s", every_s)
        await asyncio.sleep(every_s)
