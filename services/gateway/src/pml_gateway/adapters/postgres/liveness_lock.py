"""Who is alive, told by advisory locks: a process that dies loses its session and so its lock."""

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
_SEEN_AS = {"application_name": "gateway presence"}


@asynccontextmanager
async def present(dsn: str, instance: UUID) -> AsyncGenerator[None]:
    """Be seen alive as `instance` for as long as the block runs, from its first line on."""
    entered = asyncio.Event()
    staying = asyncio.create_task(_stay(dsn, instance, entered), name="presence")
    try:
        async with asyncio.timeout(_CONNECT_S):
            await entered.wait()
        yield
    finally:
        staying.cancel()
        with suppress(asyncio.CancelledError):
            await staying


async def _stay(dsn: str, instance: UUID, entered: asyncio.Event) -> None:
    while True:
        try:
            with storage_errors():
                session = await asyncpg.connect(dsn, timeout=_CONNECT_S, server_settings=_SEEN_AS)
        except StorageUnavailable as outage:
            log.warning("not seen alive for now: %s", outage)
        else:
            await _hold(session, instance, entered)
        await asyncio.sleep(_RETRY_S)


async def _hold(session: asyncpg.Connection, instance: UUID, entered: asyncio.Event) -> None:
    """Hold the lock until the session ends; return at once while a session we lost still has it:
    the caller tries again."""
    ended = asyncio.Event()
    session.add_termination_listener(lambda _: ended.set())
    try:
        with storage_errors():
            held = await session.fetchval(_SQL["enter"], lock_of(instance))
        if not held:
            log.warning("an earlier session of ours still shows us alive; following it")
            return
        entered.set()
        await ended.wait()
    except StorageUnavailable as outage:
        log.warning("lost the session that shows us alive: %s", outage)
    finally:
        session.terminate()


def lock_of(instance: UUID) -> int:
    """The key of the advisory lock that a living process holds."""
    return int.from_bytes(instance.bytes[:8], signed=True)
