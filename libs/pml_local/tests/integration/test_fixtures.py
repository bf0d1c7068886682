"""The fixtures that integration tests of all packages use."""

import json
from typing import Any, cast

import asyncpg
import pytest
from nats.aio.client import Client

from libs.pml_local.tests.support.databases import Databases
from libs.pml_local.tests.support.harness import (
    RunningNats,
    eventually,
    reachable_folder,
    running_postgres,
)
from libs.pml_local.tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.integration


async def _request(client: Client, subject: str, request: dict[str, object]) -> dict[str, Any]:
    reply = await client.request(subject, json.dumps(request).encode(), timeout=PATIENCE_S)
    return cast("dict[str, Any]", json.loads(reply.data))


async def test_nats_keeps_stored_messages_when_it_is_killed_and_started_again(
    nats_server: RunningNats,
) -> None:
    client = Client()
    await client.connect(nats_server.url, reconnect_time_wait=0)
    await _request(client, "$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s.*"]})
    await _request(client, "s.1", {"kept": True})
    await nats_server.kill()
    await nats_server.start()
    await eventually(lambda: client.is_connected)
    got = await _request(client, "$JS.API.STREAM.MSG.GET.S", {"seq": 1})
    assert got["message"]["subject"] == "s.1"
    await client.close()


async def test_a_database_is_empty_has_vectors_and_its_role_is_no_superuser(
    postgres_dsn: str,
) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        assert await connection.fetchval("SELECT '[1,2]'::vector <-> '[1,2]'::vector") == 0
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert await connection.fetchval(tables) == 0
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


LINGERS = {
    "autovacuum_naptime": "1s",
    "autovacuum_vacuum_cost_delay": "100ms",
    "autovacuum_vacuum_cost_limit": "1",
}
"""Autovacuum that starts at once and runs slowly."""
BEING_VACUUMED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND usename IS DISTINCT FROM current_user
"""


async def test_a_database_in_use_is_dropped_while_autovacuum_works_in_it() -> None:
    with reachable_folder() as folder:
        async with running_postgres(folder, **LINGERS) as server:
            async with Databases(server).empty() as dsn:
                writer = await asyncpg.connect(dsn)
                await writer.execute("CREATE TABLE rows AS SELECT generate_series(1, 9999) AS n")
                await writer.execute("DELETE FROM rows")
                await writer.close()  # this notifies autovacuum at once
                user = await asyncpg.connect(dsn)
                await eventually(lambda: user.fetchval(BEING_VACUUMED))
            gone = await asyncpg.connect(server.dsn())
            known = "SELECT count(*) FROM pg_database WHERE datname = $1"
            assert await gone.fetchval(known, dsn.rsplit("/", 1)[1]) == 0
            await gone.close()
            user.terminate()


async def test_eventually_reports_the_last_result() -> None:
    with pytest.raises(AssertionError, match="the last result was 0"):
        await eventually(lambda: 0, within=0.05)  # waits: it gives up
