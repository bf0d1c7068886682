"""A service's schema: migrated, pooled, its inbox pruned, its health checked."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta

from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.inbox import delete_handled
from pml_common.storage.migrations import migrate, pending_migrations, read_migrations
from pml_common.storage.pool import (
    Pool,
    connection,
    measured_pool,
    open_pool,
    storage_errors,
    transaction,
)
from pml_common.storage.roles import find_roles
from pml_common.storage.scoped import BoundPool, ScopedPools
from pml_common.throttled_check import ThrottledCheck

log = logging.getLogger(__name__)

INBOX_RETENTION = timedelta(days=7)
"""The retention of inbox rows; streams redeliver nothing older."""

_PRUNE_EVERY_S = 3600.0
_CLOSE_WITHIN_S = 5.0
_SESSIONS = 8
_FEW_SESSIONS = 4
_WRITE_CHECK = """
SET LOCAL work_mem = '64kB';
SELECT count(*) FROM generate_series(1, 50000);
INSERT INTO inbox (message_id, consumer)
VALUES ('00000000-0000-0000-0000-000000000000', 'write-check')
ON CONFLICT (message_id, consumer) DO UPDATE SET handled_at = now()
"""


@asynccontextmanager
async def open_scoped_schema(
    dsn: str,
    schema: str,
    package: str,
    *,
    patience_s: float = 30.0,
    shares: bool = True,
) -> AsyncGenerator[ScopedPools]:
    """Open pools on `schema`, and prune its inbox until the context exits. Waits up to `patience_s`
    for a server that is still starting, and for others to apply all migrations of `package`.

    Rows are kept apart by scope: sessions for queries of one scope, and fewer for what others share
    (only where the schema `shares`) and for work over all. The user of `dsn` owns nothing.

    Raises StorageUnavailable, MigrationChanged, RolesMissing.
    """
    await await_migrations(dsn, schema, package, patience_s=patience_s)
    with storage_errors():
        roles = await find_roles(dsn, schema)
    async with AsyncExitStack() as stack:

        async def opened(role: str, most: int) -> Pool:
            pool = _opened(dsn, schema, role, most, patience_s=patience_s)
            return await stack.enter_async_context(pool)

        application = await opened(roles.application, _SESSIONS)
        reach = await opened(roles.reach, _FEW_SESSIONS) if shares else application
        batch = await opened(roles.batch, _FEW_SESSIONS)
        await stack.enter_async_context(_pruned(batch, schema))
        yield ScopedPools(application, BoundPool(reach), batch)


@asynccontextmanager
async def _opened(
    dsn: str, schema: str, role: str, max_size: int, *, patience_s: float
) -> AsyncGenerator[Pool]:
    pool = await open_pool(dsn, schema, max_size=max_size, patience_s=patience_s, role=role)
    try:
        with measured_pool(pool, role):
            yield pool
    finally:
        await _close(pool)


@asynccontextmanager
async def _pruned(pool: Pool, schema: str) -> AsyncGenerator[None]:
    """Prune the inbox until the context exits."""
    pruning = asyncio.create_task(_prune_inbox(pool), name=f"{schema}-inbox")
    try:
        yield
    finally:
        pruning.cancel()
        with suppress(asyncio.CancelledError):
            await pruning


def storage_check(pool: Pool) -> Callable[[], Awaitable[str | None]]:
    """Return a health check that Postgres answers and, at longer intervals, that it stores."""

    async def answering() -> str | None:
        return await _outage(_ping(pool))

    async def storing() -> str | None:
        return await _outage(_write(pool))

    stores = ThrottledCheck(storing)

    async def check() -> str | None:
        return await answering() or await stores()

    return check


async def _outage(work: Coroutine[object, object, None]) -> str | None:
    try:
        await work
    except StorageUnavailable as outage:
        return str(outage)
    return None


async def _ping(pool: Pool) -> None:
    async with connection(pool) as held:
        await held.execute("SELECT 1")


async def _write(pool: Pool) -> None:
    """Write a row and about a megabyte of a temporary file: on a full disk, rows and log may still
    fit into existing files."""
    async with transaction(pool) as held:
        await held.execute(_WRITE_CHECK)


async def migrate_schema(dsn: str, schema: str, package: str, *, patience_s: float = 30.0) -> None:
    """Make the roles and apply the migrations of `package` that `schema` lacks, as its owner; waits
    up to `patience_s` for a server that is still starting.

    Raises StorageUnavailable, MigrationChanged, RolesMissing.
    """
    migrations = read_migrations(package)

    async def step() -> str | None:
        if applied := await migrate(dsn, schema, migrations):
            log.info("schema %s: applied %s", schema, ", ".join(applied))
        return None

    await _patiently(step, patience_s)


async def await_migrations(
    dsn: str, schema: str, package: str, *, patience_s: float = 30.0
) -> None:
    """Wait until others have applied all migrations of `package`; apply none.

    Raises StorageUnavailable, MigrationChanged.
    """
    migrations = read_migrations(package)

    async def step() -> str | None:
        missing = await pending_migrations(dsn, schema, migrations)
        if not missing:
            return None
        return (
            f"the schema {schema} lacks {', '.join(missing)}, or the login may not take on its "
            f"roles (deploy/README.md): run python -m {package} migrate"
        )

    await _patiently(step, patience_s)


async def _patiently(step: Callable[[], Awaitable[str | None]], patience_s: float) -> None:
    """Repeat a step until it returns no obstacle. Raises StorageUnavailable after `patience_s`."""
    deadline = asyncio.get_running_loop().time() + patience_s
    while True:
        try:
            with storage_errors():
                obstacle = await step()
        except StorageUnavailable as outage:
            obstacle = str(outage)
        if obstacle is None:
            return
        if asyncio.get_running_loop().time() >= deadline:
            raise StorageUnavailable(f"Postgres was not ready within {patience_s:g} s: {obstacle}")
        await asyncio.sleep(0.1)


async def _prune_inbox(pool: Pool) -> None:
    while True:
        try:
            await delete_handled(pool, INBOX_RETENTION)
        except StorageUnavailable as outage:
            log.warning("the inbox was not pruned: %s", outage)
        await asyncio.sleep(_PRUNE_EVERY_S)


async def _close(pool: Pool) -> None:
    """Close the pool; terminate it if a statement does not end within 5 s."""
    try:
        async with asyncio.timeout(_CLOSE_WITHIN_S):
            await pool.close()
    except TimeoutError:
        pool.terminate()
