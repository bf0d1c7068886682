"""Usage statistics, stored apart from the searched columns."""

import asyncpg
import pytest

from pml_common.storage.migrations import migrate, read_migrations
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import TrustedHashes, analysed, learning_update
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration
_BEFORE = "0006_usage.sql"
_A_CAPABILITY = """
INSERT INTO workflow_pattern (
    org, project, pattern_id, code, code_hash, structure, parameters_schema, description,
    tools_used, listed, usage_count, success_count, mean_duration_ms, learning,
    learning_revision, document, embedding, embedding_model, created_by, updated_at
)
VALUES (
    'acme', 'webapp', gen_random_uuid(), 'return 1;', 'a7f3', '{}', '{}', '', '{}', true, 7, 5,
    12.5, '{"paths": []}', 7, '', array_fill(0, ARRAY[384])::vector, 'none', 'mira', '2020-01-01'
);
INSERT INTO capability_records (org, project, name, hash, pattern_id)
SELECT org, project, 'unnamed_a7f3', '', pattern_id
FROM workflow_pattern
"""
_VERSION = "SELECT ctid::text FROM workflow_pattern"


async def test_a_learning_update_rewrites_no_searched_column(
    stores: Stores, embedder: Embedder
) -> None:
    capabilities, pools = stores.capabilities, stores.pools
    await on_execution_analyzed([analysed()], capabilities, embedder, TrustedHashes())
    await on_learning_updated([learning_update(1)], capabilities, embedder)
    listed = await pools.batch.fetchval(_VERSION)
    await on_learning_updated([learning_update(2)], capabilities, embedder)
    assert await pools.batch.fetchval(_VERSION) == listed
    assert await pools.batch.fetchval("SELECT usage_count FROM capability") == 2


async def test_the_migration_keeps_earlier_usage(empty_dsn: str) -> None:
    every = list(read_migrations("pml_registry"))
    earlier = [migration for migration in every if migration.name < _BEFORE]
    await migrate(empty_dsn, "registry", earlier)
    session = await asyncpg.connect(empty_dsn, server_settings={"search_path": "registry,public"})
    try:
        await session.execute(_A_CAPABILITY)
        await migrate(empty_dsn, "registry", every)
        await session.execute("SET pml.migrating = 'on'")
        row = await session.fetchrow("SELECT * FROM capability")
    finally:
        await session.close()
    assert row is not None
    kept = ("usage_count", "success_count", "mean_duration_ms", "learning_revision", "listed")
    assert [row[column] for column in kept] == [7, 5, 12.5, 7, True]
    assert (row["learning"], row["updated_at"].year) == ('{"paths": []}', 2020)
