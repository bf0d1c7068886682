"""The catalogue of row-level security: tables and views of the schema, roles, policies."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from uuid import UUID, uuid4

import asyncpg
import pytest

from pml_common.contracts.scope import Scope
from pml_common.storage.roles import Roles, find_roles
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import BoundPool, ScopedPools
from services.registry.tests.support.builders import ELSEWHERE, SCOPE
from services.registry.tests.support.owner import owner_session

pytestmark = pytest.mark.integration

UNPROTECTED: Mapping[str, str] = {
    "schema_migration": "names of migrations, of no scope, which services read to wait for them",
}
"""Tables without row-level security, and why."""

DEPLOYMENTS: Mapping[str, str] = {
    "embedding_models": "which models embed the texts of all scopes",
    "external_index": "whether an index outside of Postgres is to be told of changes",
    "reindex_run": "how far the last rebuild of that index is",
}
"""Tables of no scope, which all roles read, and what they say."""

_RELATIONS = """
SELECT
    relation.relname AS name, relation.relkind::text AS kind,
    relation.relrowsecurity AND relation.relforcerowsecurity AS is_forced,
    coalesce('security_invoker=true' = ANY (relation.reloptions), false) AS reads_as_caller,
    ARRAY(
        SELECT DISTINCT unnest(policy.roles)::text
        FROM pg_policies policy
        WHERE policy.schemaname = 'registry' AND policy.tablename = relation.relname
    ) AS roles
FROM pg_class relation
WHERE relation.relnamespace = 'registry'::regnamespace
    AND relation.relkind IN ('r', 'p', 'v', 'm', 'f')
ORDER BY relation.relname
"""
_BOUND = """
SELECT tablename, qual
FROM pg_policies
WHERE schemaname = 'registry' AND policyname = 'scope'
"""
_OF_DEPLOYMENT = """
SELECT tablename
FROM pg_policies
WHERE schemaname = 'registry' AND policyname = 'deployment' AND cmd = 'SELECT'
ORDER BY tablename
"""
AS_OWNER: Mapping[str, str] = {
    "discard_vectors": "drops the indexes of a model",
    "prepare_vectors": "makes the indexes of a model",
}
"""Functions that run as the owner, and what they do; the batch role alone calls them."""

_AS_OWNER = r"""
SELECT
    proname AS name,
    ARRAY(
        SELECT rolname::text
        FROM pg_roles
        WHERE has_function_privilege(rolname, function.oid, 'EXECUTE') AND NOT rolsuper
            AND rolname LIKE '%\_registry\_%'
    ) AS callers
FROM pg_proc function
WHERE pronamespace = 'registry'::regnamespace AND prosecdef
"""
_SERVER = "INSERT INTO tool_server (org, project, server) VALUES ($1, $2, 'fs')"
_SERVERS = "SELECT org FROM tool_server"


@pytest.fixture
async def pools(postgres_dsn: str) -> AsyncGenerator[ScopedPools]:
    async with open_scoped_schema(postgres_dsn, "registry", "pml_registry") as opened:
        yield opened


async def _unprotected(session: asyncpg.Connection, roles: Roles) -> Sequence[str]:
    """Return what is wrong with relations of the schema."""
    wrong: list[str] = []
    for row in await session.fetch(_RELATIONS):
        name, kind = row["name"], row["kind"]
        if kind == "v" and not row["reads_as_caller"]:
            wrong.append(f"the view {name} reads as its owner: SELECT protect('{name}')")
        if kind in ("m", "f"):
            wrong.append(f"{name} cannot have row-level security: make it a table or a view")
        missing = {*roles.all} - {*row["roles"]}
        if kind in ("r", "p") and name not in UNPROTECTED and (missing or not row["is_forced"]):
            wrong.append(f"{name} has no row-level security: SELECT protect('{name}')")
    return wrong


async def test_every_table_and_view_is_protected(pools: ScopedPools, postgres_dsn: str) -> None:
    roles = await find_roles(postgres_dsn, "registry")
    async with owner_session(postgres_dsn) as owner:
        assert await _unprotected(owner, roles) == []
        bound = {row["tablename"]: row["qual"] for row in await owner.fetch(_BOUND)}
        shared = [row["tablename"] for row in await owner.fetch(_OF_DEPLOYMENT)]
    assert shared == [*DEPLOYMENTS]
    assert len(bound) >= 17
    for table, condition in bound.items():
        for setting in ("pml.org", "pml.project"):
            assert f"current_setting('{setting}'::text, true)" in condition, table


async def test_a_table_or_view_that_a_migration_forgets_is_noticed(
    pools: ScopedPools, postgres_dsn: str
) -> None:
    roles = await find_roles(postgres_dsn, "registry")
    async with owner_session(postgres_dsn) as owner:
        await owner.execute("CREATE TABLE vectors (org text, project text)")
        await owner.execute("CREATE VIEW shown AS SELECT * FROM vectors")
        await owner.execute("CREATE MATERIALIZED VIEW kept AS SELECT * FROM vectors")
        names = [each.split(" ")[0] for each in await _unprotected(owner, roles)]
        assert names == ["kept", "the", "vectors"]
        await owner.execute("SELECT protect('vectors'), protect('shown')")
        await owner.execute("ALTER TABLE vectors NO FORCE ROW LEVEL SECURITY")
        assert "vectors has no row-level" in str(await _unprotected(owner, roles))
        await owner.execute("SELECT protect('vectors')")
        assert [each.split(" ")[0] for each in await _unprotected(owner, roles)] == ["kept"]


async def test_the_roles_own_nothing_and_read_no_table_without_policies(
    pools: ScopedPools, postgres_dsn: str
) -> None:
    roles = await find_roles(postgres_dsn, "registry")
    async with owner_session(postgres_dsn) as owner:
        for role in roles.all:
            may = await owner.fetchrow(
                "SELECT rolsuper, rolbypassrls, rolcanlogin, rolcreaterole, rolcreatedb "
                "FROM pg_roles WHERE rolname = $1",
                role,
            )
            assert may is not None
            assert not any(may.values())
            owned = (
                "SELECT count(*) FROM pg_shdepend WHERE refobjid = $1::regrole AND deptype = 'o'"
            )
            assert await owner.fetchval(owned, role) == 0
            for table in UNPROTECTED:
                changed = "SELECT has_table_privilege($1, $2, 'INSERT, UPDATE, DELETE, TRUNCATE')"
                assert not await owner.fetchval(changed, role, table)
        as_owner = {row["name"]: row["callers"] for row in await owner.fetch(_AS_OWNER)}
        assert as_owner == {each: [roles.batch] for each in AS_OWNER}
    for pool, role in zip((pools.pool, pools.reaching.pool, pools.batch), roles.all, strict=True):
        assert await pool.fetchval("SELECT current_user") == role


async def test_the_owner_sees_no_row_outside_of_migrations(
    pools: ScopedPools, postgres_dsn: str
) -> None:
    async with pools.transaction(SCOPE) as session:
        await session.execute(_SERVER, SCOPE.org, SCOPE.project)
    async with owner_session(postgres_dsn) as owner:
        assert len(await owner.fetch(_SERVERS)) == 1
        await owner.execute("RESET pml.migrating")
        await owner.execute("SET pml.migrating = ''")
        assert await owner.fetch(_SERVERS) == []
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await owner.execute(_SERVER, *("rival", "webapp"))


async def test_a_session_sees_one_scope_and_keeps_none(pools: ScopedPools) -> None:
    for scope in (SCOPE, ELSEWHERE):
        async with pools.transaction(scope) as session:
            await session.execute(_SERVER, scope.org, scope.project)
    for bound in (pools, pools.reaching):
        assert await _orgs(bound, SCOPE) == [SCOPE.org]
        assert await _orgs(bound, ELSEWHERE) == [ELSEWHERE.org]
        assert await _orgs(bound, Scope(org=SCOPE.org, project="other")) == []
        async with bound.snapshot(SCOPE) as session:
            assert await session.fetchval(_SERVERS) == SCOPE.org
        for _ in range(3):
            assert await bound.pool.fetch(_SERVERS) == []
        assert await bound.fetchval(SCOPE, _SERVERS) == SCOPE.org
    async with pools.across() as session:
        assert len(await session.fetch(_SERVERS)) == 2


async def _orgs(bound: BoundPool, scope: Scope) -> list[str]:
    return [row["org"] for row in await bound.fetch(scope, _SERVERS)]


async def test_a_transaction_that_fails_leaves_nothing_and_no_scope(pools: ScopedPools) -> None:
    async def store(scope: Scope, error: Exception | None) -> None:
        async with pools.transaction(SCOPE) as session:
            await session.execute(_SERVER, scope.org, scope.project)
            if error is not None:
                raise error

    with pytest.raises(ZeroDivisionError):
        await store(SCOPE, ZeroDivisionError())
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await store(ELSEWHERE, None)
    assert await pools.pool.fetch(_SERVERS) == []
    assert await _orgs(pools, SCOPE) == []


async def test_a_message_of_another_scope_is_not_replayed(pools: ScopedPools) -> None:
    facts = "SELECT facts FROM inbox WHERE message_id = $1"
    handled, former = uuid4(), uuid4()
    async with pools.transaction(SCOPE) as session:
        await session.execute(
            "INSERT INTO inbox (message_id, consumer, facts) VALUES ($1, 'c', '[1]')", handled
        )
    async with pools.across() as session:
        await session.execute("INSERT INTO inbox (message_id, consumer) VALUES ($1, 'c')", former)

    async def seen(scope: Scope, message_id: UUID) -> str | None:
        return await pools.fetchval(scope, facts, message_id)

    assert await seen(SCOPE, handled) == "[1]"
    assert await seen(ELSEWHERE, handled) is None
    # Rows from before the migration say no scope, and are found until they are pruned.
    assert await seen(ELSEWHERE, former) == "[]"
