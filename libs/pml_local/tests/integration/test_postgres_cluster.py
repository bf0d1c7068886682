"""Users of the embedded Postgres, of new clusters and of those of earlier releases."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from libs.pml_local.tests.support.harness import reachable_folder, running_postgres
from pml_local import postgres_cluster
from pml_local.account import database_account
from pml_local.errors import PartFailedError, StackError
from pml_local.parts import start_on_free_port
from pml_local.postgres import PostgresServer
from pml_local.postgres_cluster import ROLES, Passwords

pytestmark = pytest.mark.integration

_WORDS = Passwords("of-the-owner", {schema: f"of-{schema}" for schema in ROLES})
_FOR_ADMINISTRATORS = ("CREATE ROLE other", "CREATE DATABASE other", "ALTER ROLE pml CREATEROLE")
_FOR_OWNERS = (
    "CREATE SCHEMA mine",
    "CREATE TABLE public.mine (n int)",
    "CREATE TABLE learner.mine (n int)",
    "ALTER TABLE learner.inbox DISABLE ROW LEVEL SECURITY",
    "DROP SCHEMA learner",
    "SET ROLE pml",
    "SET ROLE postgres",
)


@asynccontextmanager
async def _running(folder: Path) -> AsyncGenerator[PostgresServer]:
    """A server as a stack runs it, with the learner's schema."""
    schemas = {"learner": "pml_learner"}
    server = PostgresServer(
        folder / "postgres",
        folder / "postgres.log",
        _WORDS,
        account=database_account(),
        schemas=schemas,
    )
    process = await start_on_free_port(server)
    try:
        await server.settle()
        yield server
    finally:
        await process.stop()


async def _refused(dsn: str, statements: tuple[str, ...]) -> list[str]:
    session = await asyncpg.connect(dsn)
    refused = list[str]()
    try:
        for statement in statements:
            try:
                await session.execute(statement)
            except asyncpg.InsufficientPrivilegeError:
                refused.append(statement)
    finally:
        await session.close()
    return refused


async def test_no_user_of_a_stack_has_rights_that_it_does_not_need() -> None:
    with reachable_folder() as folder:
        async with _running(folder) as server:
            assert await _refused(server.dsn(), _FOR_ADMINISTRATORS) == [*_FOR_ADMINISTRATORS]
            every = (*_FOR_ADMINISTRATORS, *_FOR_OWNERS)
            for schema in ROLES:
                assert await _refused(server.dsn_of(schema), every) == [*every], schema
            owner = await asyncpg.connect(server.dsn())
            assert await owner.fetchval("SELECT count(*) FROM learner.schema_migration") > 0
            await owner.close()


async def test_a_set_up_that_fails_is_no_cluster_and_logs_no_password() -> None:
    with reachable_folder() as folder:
        passwords = Passwords(
            "of-the-owner", _WORDS.services, "ALTER ROLE nobody PASSWORD 'secret';\n"
        )
        server = PostgresServer(
            folder / "postgres", folder / "postgres.log", passwords, account=database_account()
        )
        with pytest.raises(StackError):
            await server.prepare()
        assert not server.data.exists()
        said = (folder / "postgres.log").read_text()
        assert 'role "nobody" does not exist' in said
        assert "secret" not in said


async def test_a_server_that_ends_before_it_is_migrated_has_failed() -> None:
    with reachable_folder() as folder:
        async with _running(folder) as server:
            pass
        with pytest.raises(PartFailedError, match="cannot migrate the schema learner"):
            await server.settle()


def _of_the_first_release(passwords: Passwords) -> list[tuple[str, str]]:
    role = f"CREATE ROLE pml LOGIN CREATEDB PASSWORD '{passwords.owner}';\n"
    return [
        ("template1", "CREATE EXTENSION vector;\n"),
        ("postgres", f"{role}CREATE DATABASE pml OWNER pml;\n"),
    ]


async def test_a_cluster_of_an_earlier_release_is_brought_up_to_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with reachable_folder() as folder:
        data = folder / "postgres/data"
        setup = data.with_name("data.setup")
        with monkeypatch.context() as before:
            before.setattr(postgres_cluster, "_created", _of_the_first_release)
            before.setattr(postgres_cluster, "ROLES", {})
            async with running_postgres(folder) as server:
                pass
        assert "login" not in (data / "pg_hba.conf").read_text()
        setup.write_text("2\n")
        async with _running(folder) as server:
            session = await asyncpg.connect(server.dsn_of("learner"))
            await session.execute("SET ROLE pml_learner_app")
            await session.close()
            assert await _refused(server.dsn(), _FOR_ADMINISTRATORS) == [*_FOR_ADMINISTRATORS]
        assert setup.read_text() == f"{postgres_cluster.SETUP}\n"
