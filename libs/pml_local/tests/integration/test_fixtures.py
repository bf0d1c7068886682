"""The fixtures that other packages' integration tests stand on."""

import asyncpg
import nats
import pytest
from pml_local.testing import RunningNats, eventually

pytestmark = pytest.mark.integration


async def test_nats_keeps_stored_messages_when_it_is_killed_and_started_again(
    nats_server: RunningNats,
) -> None:
    client = await nats.connect(nats_server.url)
    stream = client.jetstream()
    await stream.add_stream(name="S", subjects=["s.*"])
    await stream.publish("s.1", b"kept")
    await nats_server.kill()
    await nats_server.start()
    await eventually(lambda: client.is_connected)
    assert (await stream.get_msg("S", 1)).data == b"kept"
    await client.close()


async def test_a_database_is_empty_has_vectors_and_its_role_is_no_superuser(
    postgres_dsn: str,
) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        assert await connection.fetchval("SELECT '[1,2]'::vector <-> '[1,2]'::vector") == 0
        assert (
            await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname='public'")
            == 0
        )
        assert await connection.fetchval("SHOW is_superuser") == "off"
        await connection.execute("CREATE TABLE seen (id int)")
    finally:
        await connection.close()


async def test_the_next_test_sees_nothing_of_it(postgres_dsn: str) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    try:
        assert await connection.fetchval("SELECT to_regclass('seen')") is None
    finally:
        await connection.close()


async def test_eventually_says_what_it_last_saw() -> None:
    with pytest.raises(AssertionError, match="its last answer was 0"):
        await eventually(lambda: 0, within=0.05)
