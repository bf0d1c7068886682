"""Roles of a schema with row-level security, on a real Postgres."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest

from libs.pml_local.tests.support.databases import Databases
from pml_common.storage.errors import RolesMissing
from pml_common.storage.migrations import migrate
from pml_common.storage.pool import open_pool
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


async def test_services_that_start_together_make_them_once(postgres_server: PostgresServer) -> None:
    schema = f"s{secrets.token_hex(4)}"
    databases = Databases(postgres_server)
    async with databases.empty() as one, databases.empty() as other:
        starts = [migrate(dsn, schema, (), with_roles=True) for dsn in (one, other) * 3]
        await asyncio.gather(*starts)
        roles = roles_of("pml", schema)
        assert await find_roles(one, schema) == await find_roles(other, schema) == roles
        async with _session(one) as session:
            assert await session.fetchval(_ROLES, list(roles.all)) == 3
        pool = await open_pool(one, schema, role=roles.reach)
        try:
            assert await pool.fetchval("SELECT current_user") == roles.reach
            assert await pool.fetchval("SHOW search_path") == f"{schema},public"
        finally:
            await pool.close()
    async with _session(postgres_server.dsn()) as session:
        for role in roles.all:
            await session.execute(f'DROP ROLE "{role}"')


async def test_a_user_who_may_not_make_them_is_told_what_to_grant(
    postgres_server: PostgresServer,
) -> None:
    user, schema = f"u{secrets.token_hex(4)}", "room"
    async with Databases(postgres_server).empty() as dsn:
        parts = urlsplit(dsn)
        async with _session(dsn) as session:
            await session.execute(f"CREATE ROLE {user} NOLOGIN")
            await session.execute(f"GRANT {user} TO pml WITH INHERIT FALSE, SET TRUE")
            await session.execute(f"GRANT CREATE ON DATABASE {parts.path[1:]} TO {user}")
        # As this user from the session's start: the server admits one login alone.
        limited = f"{dsn}?options=-c%20role%3D{user}"
        with pytest.raises(RolesMissing, match="may not take on the roles") as missing:
            await migrate(limited, schema, (), with_roles=True)
        said = str(missing.value)
        statements = said.partition("that exist, ")[2].partition("; then start")[0]
        assert statements.startswith(f'CREATE ROLE "{user}_room_app" NOLOGIN; ')
        roles = roles_of(user, schema)
        with pytest.raises(RolesMissing, match="run as an administrator"):
            await find_roles(dsn, schema)
        async with _session(dsn) as session:
            await session.execute(statements)
        await migrate(limited, schema, (), with_roles=True)
        assert await find_roles(limited, schema) == roles
        async with _session(limited) as session:
            await session.execute(f"DROP SCHEMA {schema} CASCADE")
        async with _session(dsn) as session:
            await session.execute(f"REVOKE CREATE ON DATABASE {parts.path[1:]} FROM {user}")
            for each in (*roles.all, user):
                await session.execute(f'DROP ROLE "{each}"')
