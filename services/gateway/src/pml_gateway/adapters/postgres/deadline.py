"""Answering in time although Postgres does not."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from pml_common.storage.errors import StorageUnavailable

T = TypeVar("T")


async def with_deadline(work: Coroutine[object, object, T], patience_s: float) -> T:
    """What `work` returns. Raises StorageUnavailable once `patience_s` seconds have passed.

    A cancelled statement may itself wait for a server that hangs, so nobody waits for that.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=patience_s)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result()
    task.cancel()
    raise StorageUnavailable(f"Postgres did not answer within {patience_s:g} s")
