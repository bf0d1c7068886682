"""The second wall: no table of any service without row-level security, and no statement of any
service sees or changes rows of another scope."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from libs.pml_local.tests.support.databases import Databases, Schema, as_owner
from pml_common.storage.queries import load_queries
from pml_common.storage.roles import Roles, find_roles
from tools.release.migrations import SCHEMAS

pytestmark = pytest.mark.integration

WITHOUT_SCOPE = ("schema_migration",)
"""Names of migrations, which services read to wait for them."""

_RELATIONS = """
SELECT
    relation.oid::regclass::text AS name, relation.relkind::text AS kind,
    relation.relrowsecurity AND relation.relforcerowsecurity AS is_forced,
    coalesce('security_invoker=true' = ANY (relation.reloptions), false) AS reads_as_caller,
    ARRAY(
        SELECT DISTINCT unnest(roles)::text
        FROM pg_policies
        WHERE schemaname = $1 AND tablename = relation.relname
    ) AS roles
FROM pg_class AS relation
WHERE relation.relnamespace = $1::regnamespace AND relation.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND relation.relname <> ALL ($2)
"""
_AS_OWNER = """
SELECT proname
FROM pg_proc
WHERE pronamespace = $1::regnamespace AND prosecdef
    AND (has_function_privilege($2, oid, 'EXECUTE') OR has_function_privilege($3, oid, 'EXECUTE'))
"""
_TABLES = """
SELECT relation.oid::regclass::text AS name, array_agg(attname::text) AS columns,
    array_agg(format_type(atttypid, NULL)) AS types
FROM pg_class AS relation
JOIN pg_attribute ON attrelid = relation.oid AND attnum > 0 AND attgenerated = ''
    AND attidentity = '' AND NOT attisdropped
WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
GROUP BY relation.oid
HAVING bool_or(attname = 'org')
"""
_CONSTRAINTS = """
SELECT conrelid::regclass::text AS name, conname
FROM pg_constraint
WHERE connamespace = $1::regnamespace AND contype IN ('c', 'f') AND coninhcount = 0
    AND conparentid = 0
"""
_OF_THE_CATALOGUE = ("list-unknown-months",)
"""Statements that read the names of tables, of no scope, and the state of their statistics."""
_BIND = "SELECT set_config('pml.org', $1, true), set_config('pml.project', $1, true)"
_OWNED = "a"
_OTHER = "b"
_MOMENT = datetime(2026, 1, 15, tzinfo=UTC)
_VALUES: Mapping[str, Any] = {
    "text": _OWNED,
    "uuid": UUID(int=1),
    "json": "{}",
    "jsonb": "{}",
    "boolean": True,
    "bool": True,
    "integer": 1,
    "int4": 1,
    "smallint": 1,
    "int2": 1,
    "bigint": 1,
    "int8": 1,
    "double precision": 1.0,
    "float8": 1.0,
    "real": 1.0,
    "float4": 1.0,
    "timestamp with time zone": _MOMENT,
    "timestamptz": _MOMENT,
}
"""The one value of each type, of which all stored rows are made, and all parameters: whatever a
statement asks for, it finds, if it may see it."""


@pytest.fixture(params=SCHEMAS)
def schema(request: pytest.FixtureRequest) -> Schema:
    """The schema of each service."""
    return Schema(request.param, f"pml_{request.param}")


@pytest.fixture
async def dsn(databases: Databases, schema: Schema) -> AsyncIterator[str]:
    """A database with the schema."""
    async with databases.copy(schema) as dsn:
        yield dsn


@pytest.fixture
async def owner(dsn: str, schema: Schema) -> AsyncIterator[asyncpg.Connection]:
    """A session of the schema's owner."""
    settings = {"search_path": f"{schema.name},public", "pml.migrating": "on"}
    session = await asyncpg.connect(as_owner(dsn), server_settings=settings)
    yield session
    await session.close()


async def _unprotected(session: asyncpg.Connection, schema: str, roles: Roles) -> Sequence[str]:
    wrong = list[str]()
    for row in await session.fetch(_RELATIONS, schema, WITHOUT_SCOPE):
        is_table, missing = row["kind"] in "rp", {*roles.all} - {*row["roles"]}
        is_walled = row["is_forced"] and not missing if is_table else row["reads_as_caller"]
        if not is_walled:
            wrong.append(row["name"])
    return wrong


async def test_no_table_of_any_service_is_without_protection(
    owner: asyncpg.Connection, dsn: str, schema: Schema
) -> None:
    roles = await find_roles(dsn, schema.name)
    assert await _unprotected(owner, schema.name, roles) == []
    called = await owner.fetch(_AS_OWNER, schema.name, roles.application, roles.reach)
    assert called == [], "functions of the owner are for work over many scopes alone"
    await owner.execute("CREATE TABLE forgotten (org text, project text)")
    assert await _unprotected(owner, schema.name, roles) == ["forgotten"]


async def test_a_session_that_serves_says_in_vain_that_it_migrates(
    owner: asyncpg.Connection, dsn: str, schema: Schema
) -> None:
    roles = await find_roles(dsn, schema.name)
    tables = await _fill(owner, schema.name)
    for role in (roles.application, roles.reach):
        async with owner.transaction():
            await owner.execute(f"SET LOCAL ROLE \"{role}\"; SET LOCAL pml.migrating = 'on'")
            for table in tables:
                assert await owner.fetch(f"SELECT FROM {table} LIMIT 1") == [], table


@pytest.mark.parametrize("schema", [Schema("learner", "pml_learner")])
async def test_what_was_handled_for_many_scopes_is_read_by_none(
    owner: asyncpg.Connection, dsn: str, schema: Schema
) -> None:
    """But for what stood there before rows had a scope, which a redelivery has to find."""
    roles = await find_roles(dsn, schema.name)
    now, before = UUID(int=1), UUID(int=2)
    handled = "INSERT INTO inbox (message_id, consumer, handled_at) VALUES ($1, 'c', {})"
    async with owner.transaction():
        await owner.execute(f'SET LOCAL ROLE "{roles.batch}"')
        await owner.execute(handled.format("now()"), now)
        await owner.execute(handled.format("now() - interval '1 day'"), before)
    async with owner.transaction():
        await owner.execute(f'SET LOCAL ROLE "{roles.application}"')
        await owner.execute(_BIND, _OTHER)
        assert [row["message_id"] for row in await owner.fetch("SELECT * FROM inbox")] == [before]


async def test_no_statement_sees_or_changes_rows_of_another_scope(
    owner: asyncpg.Connection, dsn: str, schema: Schema
) -> None:
    roles = await find_roles(dsn, schema.name)
    queries = load_queries(schema.package)
    for row in await owner.fetch(_CONSTRAINTS, schema.name):
        await owner.execute(f'ALTER TABLE {row["name"]} DROP CONSTRAINT "{row["conname"]}" CASCADE')
    empty = {name: await _run(owner, roles, _OTHER, text, ()) for name, text in queries.items()}
    tables = await _fill(owner, schema.name)
    assert len(tables) >= 6
    crossed, found = list[str](), list[str]()
    for name, text in queries.items():
        if name in _OF_THE_CATALOGUE:
            continue
        if await _run(owner, roles, _OTHER, text, tables) != empty[name]:
            crossed.append(name)
        if await _run(owner, roles, _OWNED, text, tables) != empty[name]:
            found.append(name)
    assert crossed == []
    assert len(found) > len(queries) / 3, "bound to the scope that filled them, they find rows"


async def _fill(owner: asyncpg.Connection, schema: str) -> Sequence[str]:
    """Store a row in each table that has a scope; return the tables. One whose rows need more than
    a value of each type is left out."""
    filled = list[str]()
    for row in await owner.fetch(_CONSTRAINTS, schema):
        await owner.execute(f'ALTER TABLE {row["name"]} DROP CONSTRAINT "{row["conname"]}" CASCADE')
    if schema == "learner":
        await owner.execute("SELECT make_trace_month($1)", _MOMENT)
    for row in await owner.fetch(_TABLES, schema):
        known = [
            (column, kind)
            for column, kind in zip(row["columns"], row["types"], strict=True)
            if kind.removesuffix("[]") in _VALUES
        ]
        names = ", ".join(f'"{column}"' for column, _ in known)
        places = ", ".join(f"${at}" for at in range(1, len(known) + 1))
        try:
            async with owner.transaction():
                await owner.execute(
                    f"INSERT INTO {row['name']} ({names}) VALUES ({places})",  # noqa: S608
                    *(_value(kind) for _, kind in known),
                )
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError):
            continue
        filled.append(row["name"])
    return filled


def _value(kind: str) -> object:
    """The value of a type, as Postgres or the driver names it."""
    one = _VALUES.get(kind.removesuffix("[]"))
    return [one] if kind.endswith("[]") else one


async def _run(
    owner: asyncpg.Connection, roles: Roles, scope: str, query: str, tables: Sequence[str]
) -> tuple[object, object]:
    """Run a statement bound to a scope, and undo it. Return the rows that it gave, or nothing where
    it was refused, and whether rows of the tables are other than before."""
    whole = ", ".join(
        f"(SELECT array_agg({each}::text) FROM {each} WHERE org = 'a')"  # noqa: S608 - ours
        for each in tables
    )
    stored = f"SELECT {whole}" if tables else "SELECT"
    before = await owner.fetchrow(stored)
    undone = owner.transaction()
    await undone.start()
    try:
        await owner.execute(f'SET LOCAL ROLE "{roles.application}"')
        await owner.execute(_BIND, scope)
        asked = await owner.prepare(query.replace("bound()", "true"))
        kinds = [
            each.name + "[]" * (each.kind == "array" and not each.name.endswith("[]"))
            for each in asked.get_parameters()
        ]
        rows = [tuple(row.items()) for row in await asked.fetch(*map(_value, kinds))]
        await owner.execute("RESET ROLE")
        return rows, await owner.fetchrow(stored) != before
    except (asyncpg.AmbiguousColumnError, asyncpg.UndefinedColumnError):
        raise  # the statement is wrong, whoever runs it
    except asyncpg.PostgresError:
        return [], False
    finally:
        await undone.rollback()
