"""Running a service as a process until SIGTERM."""

import asyncio
import signal
from contextlib import AbstractAsyncContextManager

from pml_common.bus.port import Bus

DRAIN_S = 2.0


async def until_stopped(bus: Bus, serving: AbstractAsyncContextManager[object]) -> None:
    """Serve until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with serving:
        await stop.wait()
        await bus.drain(DRAIN_S)
