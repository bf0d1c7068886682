"""Bounded termination of tasks."""

import asyncio
from collections.abc import Collection

_GRACE_S = 1.0


async def finish(tasks: Collection[asyncio.Task[object]], timeout: float) -> None:
    """Wait for tasks; after `timeout` seconds cancel them and wait at most another second."""
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=timeout)
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=_GRACE_S)
