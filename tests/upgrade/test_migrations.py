"""Migrations leave a schema that services of the last release can use."""

from collections.abc import Sequence

import asyncpg
import pytest

from pml_common.storage.migrations import Migration, migrate, read_migrations
from tests.upgrade.schema_changes import breaks, contract_of, read_schema
from tools.release.migrations import SCHEMAS, present, released

WALLS = ("0000_row_security.sql", "0013_row_security.sql", "0017_row_security.sql")
WALLED = "under row-level security now"
"""The one break of the release after v0.1.0: gateways and learners of before see no row of their
schema any more, and stop first (docs/operations.md)."""

schemas = pytest.mark.parametrize("schema", SCHEMAS)


async def problems(
    dsn: str, schema: str, before: Sequence[Migration], further: Sequence[Migration]
) -> list[str]:
    """Apply released migrations, then each further one, and return what these break. One marked as
    the contract of a released migration may break what the former release used."""
    await migrate(dsn, schema, before)
    session = await asyncpg.connect(dsn)
    try:
        release = await read_schema(session, schema)
        found, known = list[str](), set[str]()
        for count, migration in enumerate(further, 1):
            await migrate(dsn, schema, [*before, *further[:count]])
            broken = set(breaks(release, await read_schema(session, schema))) - known
            known |= broken
            contract = contract_of(migration.sql)
            if contract is None:
                found += sorted(f"{migration.name}: {each}" for each in broken)
            elif contract not in {each.name for each in before}:
                found.append(f"{migration.name}: {contract} is not released yet")
        return found
    finally:
        await session.close()


@schemas
def test_a_released_migration_never_changes(schema: str) -> None:
    now = present()[schema]
    changed = [name for name, digest in released()[schema].items() if now.get(name) != digest]
    assert not changed, "restore it and put the change into a new migration"


@pytest.mark.integration
@schemas
async def test_new_migrations_leave_what_the_release_uses(schema: str, postgres_dsn: str) -> None:
    every, known = read_migrations(f"pml_{schema}"), released()[schema]
    before = [each for each in every if each.name in known]
    further = [each for each in every if each.name not in known]
    found = await problems(postgres_dsn, schema, before, further)
    assert [each for each in found if not each.startswith(WALLS) or WALLED not in each] == []


@pytest.mark.integration
async def test_a_contraction_names_the_released_expansion(postgres_dsn: str) -> None:
    first = Migration(
        "0001_run.sql",
        "CREATE TABLE run (id integer PRIMARY KEY, old text, older text, state text)",
    )
    wider = Migration("0002_note.sql", "ALTER TABLE run ADD COLUMN note text, DROP COLUMN older")
    marked = "-- contract of {}\nALTER TABLE run DROP COLUMN {}"
    found = await problems(
        postgres_dsn,
        "learner",
        [first],
        [
            wider,
            Migration("0003_old.sql", marked.format("0001_run.sql", "old")),
            Migration("0004_note.sql", marked.format("0002_note.sql", "note")),
            Migration("0005_unique.sql", "CREATE UNIQUE INDEX one ON run (state)"),
        ],
    )
    assert found == [
        "0002_note.sql: run.older: dropped or renamed",
        "0004_note.sql: 0002_note.sql is not released yet",
        "0005_unique.sql: run: new rule one on columns of the release",
    ]
