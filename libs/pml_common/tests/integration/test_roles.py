"""Roles of a schema with row-level security, on a real Postgres."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from libs.pml_local.tests.support.databases import Databases, as_owner, as_service
from pml_common.storage.errors import RolesMissing
from pml_common.storage.migrations import migrate
from pml_common.storage.roles import find_roles, roles_of
from pml_local.postgres import PostgresServer

pytestmark = pytest.mark.integration

_ROLES = "SELECT count(*) FROM pg_roles WHERE rolname = ANY ($1)"


@asynccontextmanager
async def _session(dsn: str) -> AsyncGenerator[asyncpg.Connection]:
    session = await asyncpg.connect(dsn)
    try:
        yield session
    finally:
        await session.close()


def _as(dsn: str, role: str) -> str:
    """A session that has taken on a role from its start: the server admits few users."""
    return f"{dsn}?options=-c%20role%3D{role}"


async def test_migrations_that_start_together_make_them_once(
    postgres_server: PostgresServer,
) -> None:
    schema = f"s{secrets.token_hex(4)}"
    databases, roles = Databases(postgres_server), roles_of("pml", schema)
    async with databases.empty() as one, databases.empty() as other:
        async with _session(one) as session:
            await session.execute("SET createrole_self_grant = 'set'")
            await session.execute(f"CREATE ROLE {roles.login}")
        await asyncio.gather(*(migrate(dsn, schema, ()) for dsn in (one, other) * 3))
        for dsn in (one, other):
            assert await find_roles(_as(dsn, roles.login), schema) == roles
        async with _session(one) as session:
            assert await session.fetchval(_ROLES, list(roles.all)) == 3
    async with _session(postgres_server.dsn()) as session:
        for role in (*roles.all, roles.login):
            await session.execute(f'DROP ROLE "{role}"')


async def test_who_may_not_make_them_is_told_what_an_administrator_runs(
    postgres_server: PostgresServer,
) -> None:
    user, schema = f"u{secrets.token_hex(4)}", "room"
    roles = roles_of(user, schema)
    async with Databases(postgres_server).empty() as dsn:
        database = dsn.rpartition("/")[2]
        async with _session(dsn) as session:
            await session.execute(f"CREATE ROLE {user} NOLOGIN")
            await session.execute(f"GRANT {user} TO pml WITH INHERIT FALSE, SET TRUE")
            await session.execute(f"GRANT CREATE ON DATABASE {database} TO {user}")
        with pytest.raises(RolesMissing, match="run as an administrator") as missing:
            await migrate(_as(dsn, user), schema, ())
        said = str(missing.value)
        statements = said.partition("that exist, ")[2].partition("; then start")[0]
        assert statements.startswith(f'CREATE ROLE "{user}_room_app" NOLOGIN; ')
        async with _session(dsn) as session:
            await session.execute(f"SET createrole_self_grant = 'set'; {statements}")
        await migrate(_as(dsn, user), schema, ())
        assert await find_roles(_as(dsn, roles.login), schema) == roles
        async with _session(_as(dsn, user)) as session:
            await session.execute(f"DROP SCHEMA {schema} CASCADE")
        async with _session(dsn) as session:
            await session.execute(f"REVOKE CREATE ON DATABASE {database} FROM {user}")
            for each in (*roles.all, roles.login, user):
                await session.execute(f'DROP ROLE "{each}"')


async def test_no_service_serves_as_a_user_who_may_do_more(learner_dsn: str) -> None:
    roles = roles_of("pml", "learner")
    assert await find_roles(learner_dsn, "learner") == roles
    with pytest.raises(RolesMissing) as refused:
        await find_roles(as_owner(learner_dsn), "learner")
    said = str(refused.value)
    assert "may create roles and may create databases and is a member of pg_" in said
    assert " and owns something, but a service serves as one that" in said
    assert f"with {roles.login} in PML_POSTGRES_DSN" in said
    with pytest.raises(RolesMissing, match="pml_gateway_login is a member of pml_g"):
        await find_roles(as_service(learner_dsn, "gateway"), "learner")
