"""Data of earlier versions of the schema."""

from datetime import UTC, datetime

import asyncpg
import pytest

from libs.pml_local.tests.support.databases import migrated
from pml_common.bus.errors import QueryFailed
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.scope import Scope
from pml_common.storage.migrations import migrate, read_migrations
from pml_common.storage.schema import open_scoped_schema
from pml_registry.adapters.postgres_models import PostgresEmbeddingModels
from pml_registry.adapters.postgres_vectors import PgvectorIndex
from pml_registry.application.resolution import Resolution
from pml_registry.domain.edge_counts import HALF_LIFE
from pml_registry.domain.visibility import Viewer
from pml_registry.ports.vectors import EmbeddingModel
from services.registry.tests.support.builders import SCOPE
from services.registry.tests.support.stores import stores_on

pytestmark = pytest.mark.integration

_BEFORE = "0007_records.sql"
_TWO_CAPABILITIES = """
INSERT INTO workflow_pattern (
    org, project, pattern_id, code, code_hash, structure, parameters_schema, description,
    tools_used, listed, document, embedding, embedding_model, created_by
)
SELECT
    'acme', 'webapp', gen_random_uuid(), 'return ' || n || ';', repeat('a7f' || n, 16),
    '{"nodes": [], "edges": []}', '{}', '', '{}', true, '', array_fill(0, ARRAY[384])::vector,
    'none', 'mira'
FROM generate_series(1, 2) AS n;
INSERT INTO capability_usage (org, project, pattern_id, usage_count, learning)
SELECT org, project, pattern_id, 7, '{}' FROM workflow_pattern;
INSERT INTO capability_records (
    org, project, name, namespace, action, hash, pattern_id, cache_policy, cache_revision
)
SELECT org, project, 'fs:ensure', 'fs', 'ensure', 'a7f1', pattern_id, 'memoize', 3
FROM workflow_pattern WHERE code = 'return 1;';
INSERT INTO capability_records (org, project, name, hash, pattern_id)
SELECT org, project, 'unnamed_a7f2', 'a7f2', pattern_id
FROM workflow_pattern WHERE code = 'return 2;';
INSERT INTO capability_aliases (org, project, alias, pattern_id)
SELECT org, project, 'unnamed_a7f1', pattern_id
FROM workflow_pattern WHERE code = 'return 1;';
"""


async def test_each_capability_becomes_a_record_with_one_version(empty_dsn: str) -> None:
    every = list(read_migrations("pml_registry"))
    await migrate(empty_dsn, "registry", [each for each in every if each.name < _BEFORE])
    session = await asyncpg.connect(empty_dsn, server_settings={"search_path": "registry,public"})
    try:
        await session.execute(_TWO_CAPABILITIES)
    finally:
        await session.close()
    dsn = await migrated(empty_dsn, "registry")
    async with open_scoped_schema(dsn, "registry", "pml_registry") as pools:
        stores = stores_on(pools)
        stores.checks.accepts_unsigned = True
        resolution = Resolution(stores.records, stores.capabilities)

        async def resolve(reference: str) -> CapabilityRecord:
            return (await resolution.resolve(Viewer(SCOPE), reference)).record

        named, unnamed = await resolve("fs:ensure"), await resolve("unnamed_a7f2")
        assert (await resolve("unnamed_a7f1")).record_id == named.record_id
        assert await resolve(str(named.record_id)) == named
        assert await resolve(str(named.capability_id)) == named
        with pytest.raises(QueryFailed, match="no capability"):
            await resolution.resolve(Viewer(Scope(org="rival", project="webapp")), "fs:ensure")
        created = await stores.records.history(Viewer(SCOPE), SCOPE, named.record_id, None, 9)
    assert [change.change for change, _ in created] == ["created"]
    assert (named.version, named.owner, named.usage.count) == (1, "mira", 7)
    assert (named.cache.policy, named.cache.revision) == ("memoize", 3)
    assert (named.named, unnamed.named) == (True, False)
    assert named.record_id != unnamed.record_id


_FIRST, _SECOND = ([1.0] + [0.0] * 383), ([0.0] * 383 + [1.0])
_EMBEDDED = """
UPDATE workflow_pattern
SET embedding = CASE WHEN code = 'return 1;' THEN $1::real[]::vector ELSE $2::real[]::vector END,
    embedding_model = CASE WHEN code = 'return 1;' THEN 'first' ELSE 'second' END
"""
_A_TOOL = """
WITH made AS (
    INSERT INTO tool_server (org, project, server) VALUES ('acme', 'webapp', 'fs') RETURNING *
)
INSERT INTO tool_schema (
    org, project, server, name, definition, definition_hash, document, embedding, embedding_model
)
SELECT org, project, server, 'read', '{}', '', 'read', $1::real[]::vector, 'first' FROM made
"""


async def test_vectors_of_the_model_with_most_of_them_are_moved(empty_dsn: str) -> None:
    every = list(read_migrations("pml_registry"))
    await migrate(empty_dsn, "registry", [each for each in every if each.name < _BEFORE])
    session = await asyncpg.connect(empty_dsn, server_settings={"search_path": "registry,public"})
    try:
        await session.execute(_TWO_CAPABILITIES)
        await session.execute(_EMBEDDED, _FIRST, _SECOND)
        await session.execute(_A_TOOL, _FIRST)
    finally:
        await session.close()
    dsn = await migrated(empty_dsn, "registry")
    async with open_scoped_schema(dsn, "registry", "pml_registry") as pools:
        models, index = PostgresEmbeddingModels(pools.batch), PgvectorIndex(pools)
        (model,) = await models.all()
        assert (model.model, model.state) == (EmbeddingModel("first", 384), "serving")
        assert await index.count("first") == 2
        (found,) = await index.nearest(SCOPE, "capability", "first", _FIRST, 9)
        assert found.cosine == pytest.approx(1.0)
        (tool,) = await index.nearest(SCOPE, "tool", "first", _FIRST, 9)
        assert tool.id == "fs:read"
        (left,) = await models.unembedded("first", None, 9)
        assert left.key.kind == "capability"
        assert left.key.id != found.id


async def test_versions_from_before_they_were_described_keep_that_of_their_behaviour(
    empty_dsn: str,
) -> None:
    every = list(read_migrations("pml_registry"))
    await migrate(empty_dsn, "registry", [each for each in every if each.name < _BEFORE])
    session = await asyncpg.connect(empty_dsn, server_settings={"search_path": "registry,public"})
    try:
        await session.execute(_TWO_CAPABILITIES)
        await session.execute("UPDATE workflow_pattern SET description = 'said of ' || code")
    finally:
        await session.close()
    dsn = await migrated(empty_dsn, "registry")
    async with open_scoped_schema(dsn, "registry", "pml_registry") as pools:
        await pools.batch.execute("UPDATE workflow_pattern SET description = 'said since'")
        rows = await pools.batch.fetch("SELECT description FROM capability_version")
        assert {row["description"] for row in rows} == {"said of return 1;", "said of return 2;"}
        await pools.batch.execute("UPDATE capability_versions SET description = NULL")
        rows = await pools.batch.fetch("SELECT description FROM capability_version")
        assert {row["description"] for row in rows} == {"said since"}


_EDGES = """
INSERT INTO capability_dependency (
    org, project, from_capability_id, to_capability_id, edge_type, edge_source, observed_count,
    confidence_score
)
SELECT 'acme', 'webapp', one.pattern_id, other.pattern_id, edge.*
FROM workflow_pattern one, workflow_pattern other, (
    VALUES
        ('contains', 'observed', 50, 0.98), ('dependency', 'template', 0, 0.5),
        ('sequence', 'inferred', 0, 0.7)
) AS edge (edge_type, edge_source, observed_count, confidence_score)
WHERE one.code = 'return 1;' AND other.code = 'return 2;';
INSERT INTO tool_dependency (
    org, project, from_tool_id, to_tool_id, edge_type, edge_source, observed_count
)
VALUES ('acme', 'webapp', 'fs:stat', 'fs:read', 'sequence', 'observed', 3);
"""


async def test_edges_from_before_they_faded_fade_and_stay(empty_dsn: str) -> None:
    every = list(read_migrations("pml_registry"))
    await migrate(empty_dsn, "registry", [each for each in every if each.name < "0011"])
    session = await asyncpg.connect(empty_dsn, server_settings={"search_path": "registry,public"})
    try:
        await session.execute(_TWO_CAPABILITIES.split(";\nINSERT INTO capability_usage")[0])
        await session.execute(_EDGES)
    finally:
        await session.close()
    dsn = await migrated(empty_dsn, "registry")
    async with open_scoped_schema(dsn, "registry", "pml_registry") as pools:
        store = stores_on(pools).shown
        assert await store.fade(datetime.now(UTC) + 50 * HALF_LIFE, 9) == 1
        async with pools.across() as held:
            kept = await held.fetch(
                "SELECT edge_type, edge_source, confidence_score FROM capability_dependency"
            )
            tools = await held.fetchval("SELECT count(*) FROM tool_dependency")
    assert {tuple(row) for row in kept} == {
        ("contains", "inferred", 0.5),
        ("dependency", "template", 0.5),
        ("sequence", "inferred", 0.7),
    }
    assert tools == 0
