"""Databases on a server: empty ones, copies of a migrated one, one that tests share."""

import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from urllib.parse import urlsplit

import asyncpg

from pml_common.storage.schema import migrate_schema
from pml_local.postgres import PostgresServer
from pml_local.postgres_cluster import OWNER, ROLES

_END_SESSIONS = """
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity WHERE datname = '{}' AND backend_type = 'client backend'
"""
"""Not DROP ... WITH (FORCE): that fails during autovacuum, which only a superuser may end this way;
a plain DROP ends autovacuum itself."""
_numbers = itertools.count(1)
_TABLES = """
SELECT oid::regclass::text
FROM pg_class
WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    AND relname <> 'schema_migration'
"""
_REFERENCES = """
SELECT conrelid::regclass::text AS source, confrelid::regclass::text AS target
FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
WHERE contype = 'f' AND connamespace = $1::regnamespace AND conrelid <> confrelid
    AND NOT relispartition
"""


@dataclass(frozen=True)
class Schema:
    """A service's schema, and the package with its migrations."""

    name: str
    package: str


class Databases:
    """The databases of one server."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._migrated: dict[Schema, str] = {}

    @asynccontextmanager
    async def empty(self) -> AsyncGenerator[str]:
        """Create an empty database (with pgvector) until the context exits; returns its owner's
        DSN."""
        async with self._created("") as dsn:
            yield dsn

    @asynccontextmanager
    async def copy(self, schema: Schema) -> AsyncGenerator[str]:
        """Create a database with all migrations of a schema until the context exits; returns the
        DSN of its service."""
        if schema not in self._migrated:
            template = f"template_{schema.name}"
            await self._administer(f"CREATE DATABASE {template}")
            await migrate_schema(self._server.dsn(template), schema.name, schema.package)
            self._migrated[schema] = template
        # Copying the files is several times as fast as logging them (the default strategy).
        source = f" TEMPLATE {self._migrated[schema]} STRATEGY file_copy"
        async with self._created(source) as dsn:
            yield as_service(dsn, schema.name)

    @asynccontextmanager
    async def _created(self, source: str) -> AsyncGenerator[str]:
        name = f"test_{next(_numbers)}"
        await self._administer(f"CREATE DATABASE {name}{source}")
        try:
            yield self._server.dsn(name)
        finally:
            await self._administer(
                f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
                _END_SESSIONS.format(name),
                f"DROP DATABASE {name}",
            )

    async def _administer(self, *statements: str) -> None:
        connection = await asyncpg.connect(self._server.dsn())
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()


def as_owner(dsn: str) -> str:
    """Return the DSN of the same database for its owner; on a test's server all users have one
    password."""
    return _as(OWNER, dsn)


def as_service(dsn: str, schema: str) -> str:
    """Return the DSN of the same database for a schema's service, which owns nothing."""
    return _as(ROLES[schema].login, dsn)


def _as(user: str, dsn: str) -> str:
    parts = urlsplit(dsn)
    return parts._replace(netloc=f"{user}:{parts.password}@{parts.hostname}:{parts.port}").geturl()


async def migrated(dsn: str, schema: str) -> str:
    """Apply all migrations of a schema; return the DSN of its service."""
    await migrate_schema(as_owner(dsn), schema, f"pml_{schema}")
    return as_service(dsn, schema)


class SharedDatabase:
    """A migrated database that tests share, each of which finds it empty."""

    def __init__(self, dsn: str, owner: asyncpg.Connection, tables: Sequence[str]) -> None:
        self.dsn = dsn
        self._owner = owner
        self._tables = tables

    async def empty(self) -> None:
        """Delete all rows of the schema."""
        # TRUNCATE makes new files for each table and index, which takes about eight times as long.
        await self._owner.execute(
            ";".join(f"DELETE FROM {table}" for table in self._tables)  # noqa: S608 - our names
        )


@asynccontextmanager
async def shared_database(databases: Databases, schema: Schema) -> AsyncGenerator[SharedDatabase]:
    """Create the database that tests of a schema share until the context exits."""
    async with databases.copy(schema) as dsn:
        # The owner sees rows in spite of row-level security with this setting alone.
        owner = await asyncpg.connect(as_owner(dsn), server_settings={"pml.migrating": "on"})
        try:
            await owner.execute(f"SET search_path TO {schema.name}, public")
            tables = [row[0] for row in await owner.fetch(_TABLES, schema.name)]
            order = TopologicalSorter({table: set[str]() for table in tables})
            for row in await owner.fetch(_REFERENCES, schema.name):
                order.add(row["target"], row["source"])
            yield SharedDatabase(dsn, owner, tuple(order.static_order()))
        finally:
            await owner.close()
