"""Storage on a real Postgres."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.registry import CatalogChanged
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.inbox import batch_once, delete_handled, once
from pml_common.storage.migrations import (
    Migration,
    inbox_migrations,
    migrate,
    pending_migrations,
)
from pml_common.storage.pool import Pool, connection, open_pool, snapshot, transaction

pytestmark = pytest.mark.integration

COUNTER = Migration("0001_counter.sql", "CREATE TABLE counter (n int NOT NULL)")
FACT = CatalogChanged(
    scope=Scope(org="acme", project="webapp"), event_id=ids.effect_id(uuid4(), "x"), server="fs"
)


@pytest.fixture
async def pool(postgres_dsn: str) -> AsyncGenerator[Pool]:
    await migrate(postgres_dsn, "room", [*inbox_migrations(), COUNTER])
    opened = await open_pool(postgres_dsn, "room")
    yield opened
    await opened.close()


async def test_a_second_migration_run_applies_nothing(postgres_dsn: str) -> None:
    assert await migrate(postgres_dsn, "room", [COUNTER]) == ["0001_counter.sql"]
    assert await migrate(postgres_dsn, "room", [COUNTER]) == []


async def test_replicas_that_start_together_migrate_once(postgres_dsn: str) -> None:
    applied = await asyncio.gather(*(migrate(postgres_dsn, "room", [COUNTER]) for _ in range(4)))
    assert sorted(len(names) for names in applied) == [0, 0, 0, 1]


async def test_what_is_not_applied_yet_is_told_and_nothing_changed(postgres_dsn: str) -> None:
    for _ in range(2):
        assert await pending_migrations(postgres_dsn, "room", [COUNTER]) == ["0001_counter.sql"]
    await migrate(postgres_dsn, "room", [COUNTER])
    assert await pending_migrations(postgres_dsn, "room", [COUNTER]) == []
    later = Migration("0002_later.sql", "SELECT 1")
    assert await pending_migrations(postgres_dsn, "room", [COUNTER, later]) == ["0002_later.sql"]


async def test_a_migration_that_fails_leaves_nothing_behind(postgres_dsn: str) -> None:
    broken = Migration("0001_broken.sql", "CREATE TABLE half (n int); SELECT nothing_there()")
    with pytest.raises(Exception, match="nothing_there"):
        await migrate(postgres_dsn, "room", [broken])
    repaired = Migration("0001_broken.sql", "CREATE TABLE half (n int)")
    assert await migrate(postgres_dsn, "room", [repaired]) == ["0001_broken.sql"]


async def test_a_snapshot_is_consistent_and_read_only(
    pool: Pool,
) -> None:
    async with snapshot(pool) as reader, connection(pool) as writer:
        seen = [await reader.fetchval("SELECT count(*) FROM counter")]
        await writer.execute("INSERT INTO counter VALUES (1)")
        seen.append(await reader.fetchval("SELECT count(*) FROM counter"))
        assert seen == [0, 0]
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await reader.execute("INSERT INTO counter VALUES (2)")


async def test_a_redelivered_message_has_no_second_effect_and_the_same_messages(
    pool: Pool,
) -> None:
    message = uuid4()

    async def handle() -> object:
        async with once(pool, message, "learner-on-run-finished") as handling:
            if handling.replayed is not None:
                return handling.replayed
            await handling.connection.execute("INSERT INTO counter VALUES (1)")
            return handling.conclude([FACT])

    answers = await asyncio.gather(*(handle() for _ in range(5)))
    assert answers == [(FACT,)] * 5
    async with connection(pool) as held:
        assert await held.fetchval("SELECT count(*) FROM counter") == 1


async def test_batches_that_share_messages_have_one_effect_each_and_the_same_messages(
    pool: Pool,
) -> None:
    messages = [uuid4() for _ in range(9)]

    async def handle(batch: Sequence[UUID]) -> Mapping[UUID, Sequence[Message]]:
        async with batch_once(pool, batch, "c") as handling:
            new = [each for each in batch if each not in handling.replayed]
            rows = [(1,) for _ in new]
            await handling.connection.executemany("INSERT INTO counter VALUES ($1)", rows)
            return handling.conclude({new[-1]: [FACT]} if new else {})

    said = await asyncio.gather(
        handle(messages), handle(messages[::-1]), handle(messages[2:]), handle([*messages[:5]])
    )
    again = await handle(messages)
    for published in said:
        for cause, facts in published.items():
            assert again.get(cause, ()) == facts
    async with connection(pool) as held:
        assert await held.fetchval("SELECT sum(n) FROM counter") == 9
    assert [facts for facts in again.values() if facts]


async def test_a_failed_batch_is_rolled_back_with_its_effect(pool: Pool) -> None:
    messages = [uuid4(), uuid4()]

    async def handle_and_fail() -> None:
        async with batch_once(pool, messages, "c") as handling:
            await handling.connection.execute("INSERT INTO counter VALUES (1)")
            handling.conclude({messages[0]: [FACT]})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await handle_and_fail()
    async with batch_once(pool, messages, "c") as handling:
        assert handling.replayed == {}
        assert await handling.connection.fetchval("SELECT count(*) FROM counter") == 0


async def test_a_failed_handling_is_rolled_back_with_its_effect(pool: Pool) -> None:
    message = uuid4()

    async def handle_and_fail() -> None:
        async with once(pool, message, "c") as handling:
            await handling.connection.execute("INSERT INTO counter VALUES (1)")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await handle_and_fail()
    async with once(pool, message, "c") as handling:
        assert handling.replayed is None
        assert await handling.connection.fetchval("SELECT count(*) FROM counter") == 0


async def test_old_inbox_rows_are_deleted(pool: Pool) -> None:
    message = uuid4()
    async with once(pool, message, "c") as handling:
        handling.conclude([FACT])
    await delete_handled(pool, timedelta(days=1))
    async with once(pool, message, "c") as handling:
        assert handling.replayed == (FACT,)
    await delete_handled(pool, timedelta(0))
    async with once(pool, message, "c") as handling:
        assert handling.replayed is None


async def test_an_unreachable_server_is_storage_unavailable(pool: Pool) -> None:
    with pytest.raises(StorageUnavailable, match=r"within 0\.2 s"):
        await open_pool("postgresql://127.0.0.1:1/none", "room", patience_s=0.2)
    await pool.close()
    with pytest.raises(StorageUnavailable):
        async with transaction(pool):
            pass
