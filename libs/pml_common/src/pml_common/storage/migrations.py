"""Migrations: numbered SQL files, applied once, in order, under one lock."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import asyncpg

from pml_common.storage.errors import MigrationChanged
from pml_common.storage.roles import ensure_roles, may_read_migrations, quoted

_LOCK = 0x504D4C  # "PML": replicas that start together migrate one after the other

_MAKES_PROTECT = "CREATE FUNCTION protect("


@dataclass(frozen=True)
class Migration:
    """One file, applied in the order of `name`."""

    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """The hex digest of the text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def inbox_migrations() -> Sequence[Migration]:
    """Return the migrations that every schema starts with."""
    return _read("pml_common.storage", "sql")


def read_migrations(package: str) -> Sequence[Migration]:
    """Return the inbox's migration, what keeps rows apart by scope, then those in
    `<package>/sql/migrations`, by name."""
    own = _read(package, "sql/migrations")
    if any(_MAKES_PROTECT in each.sql for each in own):  # from before these were shared
        return [*inbox_migrations(), *own]
    return [*inbox_migrations(), *_read("pml_common.storage", "sql_scoped"), *own]


def _read(package: str, folder: str) -> Sequence[Migration]:
    root = files(package).joinpath(folder)
    found = [entry for entry in root.iterdir() if entry.name.endswith(".sql")]
    return [
        Migration(entry.name, entry.read_text(encoding="utf-8"))
        for entry in sorted(found, key=lambda entry: entry.name)
    ]


async def migrate(dsn: str, schema: str, migrations: Sequence[Migration]) -> Sequence[str]:
    """Bring `schema` and its roles up to date, as its owner, and return the names applied now.

    Each runs in its own transaction with `schema` first on the search path, and with the setting
    that lets the owner change rows in spite of row-level security.
    Raises MigrationChanged, RolesMissing.
    """
    session = await asyncpg.connect(
        dsn, timeout=10.0, server_settings={"search_path": f"{schema},public"}
    )
    try:
        await session.execute("SELECT pg_advisory_lock($1)", _LOCK)
        await session.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        roles = await ensure_roles(session, schema)
        await session.execute("SET pml.migrating = 'on'")
        await session.execute(
            "CREATE TABLE IF NOT EXISTS schema_migration ("
            " name text PRIMARY KEY, sha256 text NOT NULL,"
            " applied_at timestamptz NOT NULL DEFAULT now());"
            # Services wait until all are applied.
            f'GRANT USAGE ON SCHEMA "{schema}" TO {quoted(roles.application)};'
            f"GRANT SELECT ON schema_migration TO {quoted(roles.application)}"
        )
        rows = await session.fetch("SELECT name, sha256 FROM schema_migration")
        pending = due(migrations, {row["name"]: row["sha256"] for row in rows})
        for migration in pending:
            async with session.transaction():
                await session.execute(migration.sql)
                await session.execute(
                    "INSERT INTO schema_migration (name, sha256) VALUES ($1, $2)",
                    migration.name,
                    migration.sha256,
                )
        return [migration.name for migration in pending]
    finally:
        await session.close()


async def pending_migrations(
    dsn: str, schema: str, migrations: Sequence[Migration]
) -> Sequence[str]:
    """Return the names of those that `schema` lacks; changes nothing. Raises MigrationChanged."""
    session = await asyncpg.connect(dsn, timeout=10.0, server_settings={"search_path": schema})
    applied: dict[str, str] = {}
    try:
        if await may_read_migrations(session, schema, "schema_migration"):
            rows = await session.fetch("SELECT name, sha256 FROM schema_migration")
            applied = {row["name"]: row["sha256"] for row in rows}
    finally:
        await session.close()
    return [migration.name for migration in due(migrations, applied)]


def due(migrations: Sequence[Migration], applied: dict[str, str]) -> Sequence[Migration]:
    """Return those not applied yet. Raises MigrationChanged if an applied text differs."""
    for migration in migrations:
        known = applied.get(migration.name)
        if known is not None and known != migration.sha256:
            raise MigrationChanged(
                f"{migration.name} was changed after it was applied; "
                "restore it and put the change into a new migration"
            )
    return [migration for migration in migrations if migration.name not in applied]
