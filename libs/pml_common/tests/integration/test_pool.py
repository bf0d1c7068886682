"""Connections return to their pool in every state."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress

import asyncpg
import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from libs.pml_local.tests.support.tcp_proxy import TcpProxy
from pml_common.storage import pool as storage_pool
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.pool import Pool, connection, open_pool, transaction

pytestmark = pytest.mark.integration


@pytest.fixture
async def pool(postgres_dsn: str) -> AsyncIterator[Pool]:
    """A pool of one connection: if it is not released, every other caller is blocked."""
    pool = await open_pool(postgres_dsn, "public", max_size=1)
    try:
        yield pool
    finally:
        pool.terminate()


async def answer(pool: Pool) -> object:
    async with asyncio.timeout(PATIENCE_S), connection(pool) as held:
        return await held.fetchval("SELECT 1")


async def test_a_connection_is_reused(pool: Pool) -> None:
    asked = "SELECT pg_backend_pid()"
    async with connection(pool) as held:
        first = await held.fetchval(asked)
    async with connection(pool) as held:
        assert await held.fetchval(asked) == first
    assert await asyncio.gather(*(answer(pool) for _ in range(5))) == [1] * 5


async def test_a_connection_is_usable_after_a_cancelled_statement(pool: Pool) -> None:
    begun = asyncio.Event()

    async def sleep() -> None:
        async with connection(pool) as held:
            begun.set()
            await held.execute("SELECT pg_sleep(60)")

    sleeping = asyncio.create_task(sleep())
    await begun.wait()
    for _ in range(3):
        await asyncio.sleep(0)
    sleeping.cancel()
    with suppress(asyncio.CancelledError):
        await sleeping
    assert await answer(pool) == 1


async def test_a_connection_that_does_not_answer_is_replaced_in_time(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connection(pool) as held:
        backend = await held.fetchval("SELECT pg_backend_pid()")
    monkeypatch.setattr(storage_pool, "_PATIENCE_S", 0.5)
    os.kill(backend, signal.SIGSTOP)
    try:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(StorageUnavailable):
                async with (
                    connection(pool) as held,
                    asyncio.timeout(0.1),  # waits: for a frozen one
                ):
                    await held.fetchval("SELECT 1")
        monkeypatch.undo()
        assert await answer(pool) == 1
    finally:
        os.kill(backend, signal.SIGCONT)


async def test_a_transaction_left_open_is_rolled_back(pool: Pool) -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    async with connection(pool) as held:
        await held.execute("BEGIN; CREATE TABLE left_open ()")
    async with connection(pool) as held:
        assert not held.is_in_transaction()
        assert await held.fetchval("SELECT to_regclass('left_open')") is None
    assert told


async def test_a_connection_ended_by_the_server_is_replaced(pool: Pool) -> None:
    with pytest.raises(StorageUnavailable):
        async with connection(pool) as held:
            await held.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert await answer(pool) == 1


async def test_a_connection_is_usable_after_a_failed_statement(pool: Pool) -> None:
    with pytest.raises(asyncpg.UndefinedTableError):
        async with connection(pool) as held:
            await held.execute("SELECT * FROM nowhere")
    assert await answer(pool) == 1


async def test_an_exhausted_pool_is_storage_unavailable(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_pool, "_PATIENCE_S", 0.02)
    async with connection(pool):
        with pytest.raises(StorageUnavailable):
            await answer(pool)
    assert await answer(pool) == 1


class HeldOpen(TcpProxy):
    """A proxy that forwards the server's data but not the end of its connection."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.passed_on = asyncio.Event()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        self._open.add(sink)
        while data := await source.read(65536):
            sink.write(data)
            self.passed_on.set()


async def test_a_connection_that_ends_between_two_statements_is_an_outage_and_replaced(
    postgres_dsn: str,
) -> None:
    """The driver has read the server's last message, but not yet the end of the connection."""
    link = HeldOpen(postgres_dsn)
    await link.listen()
    pool = await open_pool(link.dsn, "public", max_size=1)
    try:
        async with connection(pool) as held:
            backend = await held.fetchval("SELECT pg_backend_pid()")
        link.passed_on.clear()
        os.kill(backend, signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            await link.passed_on.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        with pytest.raises(StorageUnavailable) as outage:
            await answer(pool)
        assert isinstance(outage.value.__cause__, asyncpg.InternalClientError)
        assert await answer(pool) == 1
    finally:
        pool.terminate()
        await link.cut()


async def test_connections_ended_under_load_are_outages_only(
    postgres_dsn: str,
) -> None:
    pool = await open_pool(postgres_dsn, "public", max_size=8)
    kept, over = Counter[str](), asyncio.Event()

    async def work() -> None:
        while not over.is_set():
            try:
                async with transaction(pool) as held:
                    await held.fetchval("SELECT 1")
                kept["done"] += 1
            except StorageUnavailable:
                kept["outages"] += 1

    async def end_all() -> None:
        outside = await asyncpg.connect(postgres_dsn)
        await outside.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        await outside.close()

    working = [asyncio.create_task(work()) for _ in range(16)]
    for _ in range(40):
        await end_all()
    over.set()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*working)
    pool.terminate()
    assert kept["outages"]
    assert kept["done"]
