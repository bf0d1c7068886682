"""Connection pools bound to one service's schema."""

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from pml_common.storage.errors import StorageUnavailable, outage_in
from pml_common.telemetry import metrics
from pml_common.telemetry.instruments import Gauge, Sum, Values

if TYPE_CHECKING:  # the stubs make these generic, the library does not
    Pool = asyncpg.Pool[asyncpg.Record]
    Connection = PoolConnectionProxy[asyncpg.Record]
else:
    Pool = asyncpg.Pool
    Connection = PoolConnectionProxy

_PATIENCE_S = 5.0
_IDLE_S = 15.0
"""Seconds after which an unused connection is closed: each is a process of 2 to 6 MB."""

_connections = Gauge(metrics.POOL_CONNECTIONS)
_limit = Gauge(metrics.POOL_LIMIT)
_waiting = Sum(metrics.POOL_WAITING)
_waited = Sum(metrics.POOL_WAITED)
_timeouts = Sum(metrics.POOL_TIMEOUTS)


async def open_pool(
    dsn: str,
    schema: str,
    *,
    max_size: int = 8,
    patience_s: float = 30.0,
    role: str | None = None,
) -> Pool:
    """Open a pool whose search path is `schema`, then `public`; its sessions have taken on `role`
    from their start, and nothing resets that.

    Waits up to `patience_s` for a server that is still starting. Raises StorageUnavailable.
    """
    settings = {"search_path": f"{schema},public", "application_name": schema}
    if role is not None:
        settings["role"] = role
    deadline = asyncio.get_running_loop().time() + patience_s
    while True:
        try:
            with storage_errors():
                return await asyncpg.create_pool(
                    dsn,
                    min_size=1,
                    max_size=max_size,
                    max_inactive_connection_lifetime=_IDLE_S,
                    timeout=5.0,
                    command_timeout=30.0,
                    server_settings=settings,
                    reset=_no_reset,
                )
        except StorageUnavailable as outage:
            if asyncio.get_running_loop().time() >= deadline:
                raise StorageUnavailable(
                    f"Postgres was not ready within {patience_s:g} s: {outage}"
                ) from outage
            await asyncio.sleep(0.1)


async def _no_reset(connection: object) -> None:
    """Skip asyncpg's reset of a released connection: our statements leave no session state, and the
    reset costs a round trip. asyncpg itself rolls back a transaction left open."""


@contextmanager
def storage_errors() -> Generator[None]:
    """Map driver errors that mean "unreachable" or "cannot store" to StorageUnavailable."""
    try:
        yield
    except Exception as error:
        outage = outage_in(error)
        if outage is None:
            raise
        raise StorageUnavailable(outage) from error


@asynccontextmanager
async def connection(pool: Pool) -> AsyncGenerator[Connection]:
    """Acquire a connection for a few statements. Raises StorageUnavailable."""
    with storage_errors():
        held = await _acquire(pool)
        try:
            yield held
        except asyncpg.InternalClientError:
            held.terminate()  # the driver's protocol state may be unrecoverable
            raise
        finally:
            await pool.release(held, timeout=_PATIENCE_S)


async def _acquire(pool: Pool) -> Connection:
    began = time.monotonic()
    _waiting.add(1)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await pool.acquire()
    except TimeoutError:
        _timeouts.add(1)
        raise
    finally:
        _waiting.add(-1)
        _waited.add(time.monotonic() - began)


@contextmanager
def measured_pool(pool: Pool, name: str) -> Generator[None]:
    """Measure a pool's connections under a name until the context exits."""

    def connections() -> dict[Values, float]:
        idle = pool.get_idle_size()
        return {(name, "used"): pool.get_size() - idle, (name, "idle"): idle}

    limit = pool.get_max_size()
    with _connections.reading(connections), _limit.reading(lambda: {(name,): limit}):
        yield


@asynccontextmanager
async def transaction(pool: Pool) -> AsyncGenerator[Connection]:
    """Acquire a connection inside a transaction, committed at the end of the block.

    Raises StorageUnavailable.
    """
    async with connection(pool) as held, held.transaction():
        yield held


@asynccontextmanager
async def snapshot(pool: Pool) -> AsyncGenerator[Connection]:
    """Acquire a read-only connection whose statements all see one snapshot, as a page and its total
    must. Raises StorageUnavailable.
    """
    async with (
        connection(pool) as held,
        held.transaction(isolation="repeatable_read", readonly=True),
    ):
        yield held
