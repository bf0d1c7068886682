"""Servers whose disk is full: they report it on a write and recover once there is room."""

import secrets
from pathlib import Path
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NoReplyInTime

from libs.pml_local.tests.support.harness import reachable_folder, running_postgres
from libs.pml_local.tests.support.small_disk import MIB, small_disk
from pml_common.bus import names
from pml_common.bus.errors import BusUnavailable
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.streams import StreamSettings
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.migrations import inbox_migrations, migrate
from pml_common.storage.pool import open_pool, transaction
from pml_common.storage.schema import storage_check
from pml_local.nats import NatsServer
from pml_local.parts import start_part

pytestmark = pytest.mark.integration

SCOPE = Scope(org="acme", project="webapp")
SUBJECT = names.write_check("evt", "gateway")


async def _write_too_much(url: str) -> None:
    """Publish one message that does not fit on the disk."""
    client = Client()
    await client.connect(url)
    try:
        with pytest.raises(NoReplyInTime):
            await client.request(SUBJECT, bytes(MIB // 2), timeout=1.0)  # waits: no reply
    finally:
        await client.close()


async def test_one_write_without_room_stops_a_stream_until_the_server_is_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pml_common.bus.write_check.WITHIN_S", 2.0)
    monkeypatch.setattr("pml_common.bus.publish.REPLY_TIMEOUT_S", 0.5)
    with small_disk(tmp_path / "disk", 64) as disk:
        server = NatsServer(
            disk.folder / "nats",
            tmp_path / "nats.log",
            secrets.token_hex(),
            streams=StreamSettings(),
        )
        process = await start_part(server)
        bus = await NatsBus.connect(server.url, service="gateway", identity=all_services_identity())
        try:
            assert await bus.refusal() is None
            assert await server.refusal() is None
            disk.fill()
            await _write_too_much(server.url)
            disk.make_room()
            assert await bus.healthy()
            refusal = await bus.refusal()
            assert str(refusal).startswith("NATS stores nothing: ")
            assert f"{SUBJECT}: " in str(refusal)
            assert SUBJECT in str(await server.refusal())
            listed = ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=())
            with pytest.raises(BusUnavailable):
                await bus.publish(listed)
            await process.stop()
            assert await server.refusal() is None
            process = await start_part(server)
            assert await server.refusal() is None
        finally:
            await bus.drain(0.1)
            await process.stop()


async def test_a_postgres_whose_disk_is_full_is_an_outage_until_there_is_room() -> None:
    with reachable_folder() as folder, small_disk(folder / "disk", 256) as disk:
        async with running_postgres(disk.folder) as server:
            await migrate(server.dsn(), "room", inbox_migrations())
            pool = await open_pool(server.dsn(), "room", max_size=2)
            try:
                assert await storage_check(pool)() is None
                disk.fill()
                assert "No space left" in str(await storage_check(pool)())
                with pytest.raises(StorageUnavailable, match="cannot store anything"):
                    async with transaction(pool) as held:
                        await held.execute(
                            "CREATE TABLE much AS SELECT repeat('x', 1000) FROM "
                            "generate_series(1, 5000)"
                        )
                disk.make_room()
                assert await storage_check(pool)() is None
            finally:
                pool.terminate()
