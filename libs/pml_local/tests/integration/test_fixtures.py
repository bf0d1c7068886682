"""The fixtures that integration tests of all packages use."""

import json
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError

from libs.pml_local.tests.support.databases import Databases
from libs.pml_local.tests.support.harness import (
    RunningNats,
    eventually,
    reachable_folder,
    running_postgres,
)
from libs.pml_local.tests.support.nats_accounts import NatsAccount, NatsAccounts
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


async def test_a_test_with_a_server_of_its_own_gets_its_url(
    nats_url: str, nats_server: RunningNats
) -> None:
    assert nats_url == nats_server.url


async def _streams(account: NatsAccount, new: str) -> list[str]:
    """Create a stream and return the names of all."""
    client = Client()
    await client.connect(account.url)
    try:
        await _request(client, f"$JS.API.STREAM.CREATE.{new}", {"name": new, "subjects": ["s"]})
        return (await _request(client, "$JS.API.STREAM.NAMES", {}))["streams"]
    finally:
        await client.close()


async def test_an_account_sees_nothing_of_another(nats_accounts: NatsAccounts) -> None:
    for new in ("FIRST", "SECOND"):
        assert await _streams(await nats_accounts.take(), new) == [new]


async def test_a_server_without_fresh_accounts_makes_way_for_the_next(tmp_path: Path) -> None:
    folders = iter((tmp_path / "first", tmp_path / "second"))
    accounts = NatsAccounts(lambda: next(folders), of_a_server=1)
    first = await accounts.take()
    assert await _streams(first, "S") == ["S"]
    assert await _streams(await accounts.take(), "S") == ["S"]
    with pytest.raises((NatsError, OSError)):
        await Client().connect(first.url, reconnect_time_wait=0, max_reconnect_attempts=1)
    await accounts.close()


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
