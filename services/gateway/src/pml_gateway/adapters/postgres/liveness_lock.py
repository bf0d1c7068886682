"""Liveness of gateway processes by advisory locks: a process that dies loses its session and so its
lock."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import asyncpg

from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.pool import storage_errors
from pml_common.storage.queries import load_queries

log = logging.getLogger(__name__)

_SQL = load_queries("pml_gateway")
_RETRY_S = 0.5
_CONNECT_S = 5.0
_SERVER_SETTINGS = {"application_name": "gateway liveness"}


@asynccontextmanager
async def liveness_lock(dsn: str, instance: UUID) -> AsyncGenerator[None]:
    """Hold the lock of `instance` until the context exits; it is held when the context is
    entered."""
    acquired = asyncio.Event()
    holder = asyncio.create_task(_keep(dsn, instance, acquired), name="liveness-lock")
    try:
        async with asyncio.timeout(_CONNECT_S):
            await acquired.wait()
        yield
    finally:
        holder.cancel()
        with suppress(asyncio.CancelledError):
            await holder


async def _keep(dsn: str, instance: UUID, acquired: asyncio.Event) -> None:
    while True:
        try:
            with storage_errors():
                session = await asyncpg.connect(
                    dsn, timeout=_CONNECT_S, server_settings=_SERVER_SETTINGS
                )
        except StorageUnavailable as outage:
            log.warning("the liveness lock is not held for now: %s", outage)
        else:
            await _hold(session, instance, acquired)
        await asyncio.sleep(_RETRY_S)


async def _hold(session: asyncpg.Connection, instance: UUID, acquired: asyncio.Event) -> None:
    """Hold the lock until the session ends; return at once while a lost session of this process
    still has it: the caller tries again."""
    ended = asyncio.Event()
    session.add_termination_listener(lambda _: ended.set())
    try:
        with storage_errors():
            held = await session.fetchval(_SQL["enter"], lock_of(instance))
        if not held:
            log.warning("a lost session still holds the liveness lock; trying again")
            return
        acquired.set()
        await ended.wait()
    except StorageUnavailable as outage:
        log.warning("lost the session of the liveness lock: %s", outage)
    finally:
        session.terminate()


def lock_of(instance: UUID) -> int:
    """Return the key of the advisory lock that a live process holds."""
    return int.from_bytes(instance.bytes[:8], signed=True)
