"""Unreadable messages in the outbox, among others."""

import logging
from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest

from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.outbox_relay import OutboxRelay
from pml_gateway.adapters.postgres.outbox import PostgresOutbox
from pml_gateway.adapters.postgres.workflows import PostgresWorkflowStore
from services.gateway.tests.support.builders import SCOPE, workflow

pytestmark = pytest.mark.integration

PUT = """
INSERT INTO outbox (message_id, org, project, message, content, due_at)
VALUES (gen_random_uuid(), 'acme', 'web', $1, $2, now() - interval '1 hour')
"""
LEFT = "SELECT message, set_aside_because FROM outbox ORDER BY message"
UNREADABLE = {"of-a-newer-version": "{}", "run-workflow": r'{"scope": "secret \u0000"}'}


@pytest.fixture
async def pool(postgres_dsn: str) -> AsyncGenerator[ScopedPools]:
    async with open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as opened:
        yield opened


async def test_what_cannot_be_read_is_set_aside_with_the_reason_and_its_neighbours_go_on(
    pool: ScopedPools, caplog: pytest.LogCaptureFixture
) -> None:
    bus, outbox, new = MemoryBus(), PostgresOutbox(pool, lease=timedelta(0)), workflow()
    async with pool.across() as session:
        for name, content in UNREADABLE.items():
            await session.execute(PUT, name, content)
    await PostgresWorkflowStore(pool, head_start=timedelta(0)).accept(new, (new.requested,))

    with caplog.at_level(logging.ERROR):
        await OutboxRelay(outbox, bus).sweep()

    (stored,) = await bus.history(SCOPE, str(new.workflow_id))
    assert stored.message == new.requested
    await outbox.drop([new.requested.event_id])
    assert await outbox.claim(10) == []
    async with pool.across() as session:
        left = {row["message"]: row["set_aside_because"] for row in await session.fetch(LEFT)}
    assert left["of-a-newer-version"] == "there is no message type of-a-newer-version"
    assert left["run-workflow"] == "it is no run-workflow: scope: must be an object"
    assert [reason in caplog.text for reason in left.values()] == [True, True]
    assert "secret" not in caplog.text
