"""Pages of capabilities and their total, during concurrent changes."""

import asyncio
from collections.abc import AsyncGenerator

import asyncpg
import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.registry import ListCapabilities
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import (
    HASH,
    OTHER_HASH,
    SCOPE,
    analysed,
    learning_update,
)
from services.registry.tests.support.owner import owner_session
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import stores_on

pytestmark = pytest.mark.integration

LOCK_READS = """
ALTER VIEW capability RENAME TO capability_unlocked;
CREATE VIEW capability AS
SELECT * FROM capability_unlocked WHERE pg_advisory_xact_lock(7)::text IS NOT NULL;
SELECT protect('capability');
"""
"""Reads of capabilities start and then wait until the lock is free."""
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@pytest.fixture
async def pools(postgres_dsn: str) -> AsyncGenerator[ScopedPools]:
    async with open_scoped_schema(postgres_dsn, "registry", "pml_registry") as opened:
        yield opened


async def test_a_concurrent_listing_is_both_on_the_page_and_counted_or_neither(
    pools: ScopedPools, embedder: Embedder, postgres_dsn: str
) -> None:
    registry = StoreDriver(stores_on(pools), embedder)
    for code_hash in (HASH, OTHER_HASH):
        await registry.analysed(analysed(code_hash))
    await registry.learned(learning_update(code_hash=HASH))
    async with owner_session(postgres_dsn) as session:
        await session.execute(LOCK_READS)
    holder = await asyncpg.connect(postgres_dsn)
    await holder.execute("SELECT pg_advisory_lock(7)")

    query = ListCapabilities(scope=SCOPE, limit=50)
    paging = asyncio.create_task(stores_on(pools).capabilities.page(query))
    await eventually(lambda: holder.fetchval(WAITING))
    async with pools.across() as session:
        listed = "UPDATE workflow_pattern SET listed = true WHERE code_hash = $1"
        await session.execute(listed, OTHER_HASH)
    await holder.close()

    page = await paging
    assert (len(page.capabilities), page.total) == (1, 1)
