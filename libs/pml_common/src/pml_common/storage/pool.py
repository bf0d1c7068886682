"""Connection pools bound to one service's schema."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from pml_common.storage.errors import StorageUnavailable, outage_in

if TYPE_CHECKING:  # the stubs make these generic, the library does not
    Pool = asyncpg.Pool[asyncpg.Record]
    Connection = PoolConnectionProxy[asyncpg.Record]
else:
    Pool = asyncpg.Pool
    Connection = PoolConnectionProxy

_PATIENCE_S = 5.0


async def open_pool(dsn: str, schema: str, *, max_size: int = 8, patience_s: float = 30.0) -> Pool:
    """A pool whose connections find `schema` first, then `public`.

    Waits up to `patience_s` for a server that is still starting. Raises StorageUnavailable.
    """
    deadline = asyncio.get_running_loop().time() + patience_s
    while True:
        try:
            with reachable():
                return await asyncpg.create_pool(
                    dsn,
                    min_size=1,
                    max_size=max_size,
                    timeout=5.0,
                    command_timeout=30.0,
                    server_settings={"search_path": f"{schema},public", "application_name": schema},
                    reset=_as_it_is,
                )
        except StorageUnavailable as outage:
            if asyncio.get_running_loop().time() >= deadline:
                raise StorageUnavailable(
                    f"Postgres was not ready within {patience_s:g} s: {outage}"
                ) from outage
            await asyncio.sleep(0.1)


async def _as_it_is(held: object) -> None:
    """A connection goes back as it is: what we run leaves nothing of a session behind, and asking
    the server to clear up is a round trip of its own. asyncpg ends a transaction left open."""


@contextmanager
def reachable() -> Generator[None]:
    """Turn "no server" and "stores nothing" into StorageUnavailable; let every other error
    through."""
    try:
        yield
    except Exception as error:
        outage = outage_in(error)
        if outage is None:
            raise
        raise StorageUnavailable(outage) from error


@asynccontextmanager
async def connection(pool: Pool) -> AsyncGenerator[Connection]:
    """A connection for a few statements. Raises StorageUnavailable."""
    with reachable():
        async with asyncio.timeout(_PATIENCE_S):
            held = await pool.acquire()
        try:
            yield held
        except asyncpg.InternalClientError:
            held.terminate()  # its protocol may be in a state that no message leads out of
            raise
        finally:
            await _give_back(pool, held)


async def _give_back(pool: Pool, held: Connection) -> None:
    """asyncpg does it in a task of its own, for it may have to wait for a statement that was
    cancelled; where it has not, that is some turns of the loop for nothing."""
    inner = held._con  # pyright: ignore[reportPrivateUsage]
    if inner is None or inner._protocol._is_cancelling():  # pyright: ignore[reportPrivateUsage]
        await pool.release(held, timeout=_PATIENCE_S)
        return
    inner._on_release()  # pyright: ignore[reportPrivateUsage]
    await held._holder.release(_PATIENCE_S)  # pyright: ignore[reportPrivateUsage]


@asynccontextmanager
async def transaction(pool: Pool) -> AsyncGenerator[Connection]:
    """A connection inside a transaction, committed at the end of the block.

    Raises StorageUnavailable.
    """
    async with connection(pool) as held, held.transaction():
        yield held


@asynccontextmanager
async def snapshot(pool: Pool) -> AsyncGenerator[Connection]:
    """A connection to read with: all its statements see the rows of one moment, as a page and the
    number of all there are must. Raises StorageUnavailable.
    """
    async with (
        connection(pool) as held,
        held.transaction(isolation="repeatable_read", readonly=True),
    ):
        yield held
