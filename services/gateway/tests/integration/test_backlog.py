"""Measurements of the rows that wait in Postgres, and of the pool."""

from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest

from libs.pml_common.tests.support.measured import measured
from pml_common.storage.pool import connection, measured_pool, open_pool
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_common.telemetry import metrics
from pml_gateway.adapters.postgres.backlog import measure_backlog
from pml_gateway.adapters.postgres.workflows import PostgresWorkflowStore
from services.gateway.tests.support.builders import workflow

pytestmark = pytest.mark.integration


@pytest.fixture
async def pool(postgres_dsn: str) -> AsyncGenerator[ScopedPools]:
    async with open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as opened:
        yield opened


async def test_messages_and_approvals_that_wait_are_counted_while_somebody_collects(
    pool: ScopedPools,
) -> None:
    await measure_backlog(pool)  # nobody does: it counts nothing
    store, new = PostgresWorkflowStore(pool, head_start=timedelta(0)), workflow()
    with measured() as m:
        await measure_backlog(pool)
        outbox, approvals = metrics.OUTBOX_BACKLOG.samples[0], metrics.APPROVALS_WAITING.samples[0]
        before = m.value(outbox), m.value(approvals)
        await store.accept(new, (new.requested,))
        async with pool.across() as session:
            await session.execute(
                "UPDATE workflow SET state = 'awaiting_approval' WHERE workflow_id = $1",
                new.workflow_id,
            )
        await measure_backlog(pool)
        assert (m.value(outbox), m.value(approvals)) == (before[0] + 1, before[1] + 1)


async def test_connections_are_counted_while_they_are_used(postgres_dsn: str) -> None:
    connections = metrics.POOL_CONNECTIONS.samples[0]
    # Not of a schema: that prunes its inbox, with a connection, as soon as it is open.
    async with await open_pool(postgres_dsn, "public") as pool:
        with measured() as m, measured_pool(pool, "mine"):
            async with connection(pool), connection(pool):
                assert m.value(connections, pml_pool="mine", pml_state="used") == 2
            assert m.value(metrics.POOL_LIMIT.samples[0], pml_pool="mine") == pool.get_max_size()
            assert m.value(metrics.POOL_WAITING.samples[0]) == 0
            assert m.value(metrics.POOL_WAITED.samples[0]) > 0
