"""Deadlines of Postgres operations."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from pml_common.storage.errors import StorageUnavailable

T = TypeVar("T")


async def with_deadline(work: Coroutine[object, object, T], patience_s: float) -> T:
    """Return the result of `work`. Raises StorageUnavailable after `patience_s` seconds.

    The cancellation of a statement may itself block on a hanging server, so it is not awaited.
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
