"""`python -m pml_<service> migrate`, and services that wait for it."""

import asyncio
import sys

import asyncpg
import pytest

from libs.pml_local.tests.support.databases import as_service
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.schema import await_migrations, open_scoped_schema

pytestmark = pytest.mark.integration


async def _migrate(package: str, dsn: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", package, "migrate",
        env={"PML_POSTGRES_DSN": dsn, "PML_START_PATIENCE_S": "1"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, said = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    return process.returncode, said.decode()


async def test_each_schema_is_migrated_by_a_command_that_may_be_repeated(postgres_dsn: str) -> None:
    for name in ("gateway", "learner", "registry", "registry"):
        code, said = await _migrate(f"pml_{name}", postgres_dsn)
        assert code == 0, said
        assert f"schema {name} is up to date" in said
        await await_migrations(postgres_dsn, name, f"pml_{name}", patience_s=0)


async def test_a_database_that_is_away_is_told(postgres_dsn: str) -> None:
    code, said = await _migrate("pml_learner", "postgresql://127.0.0.1:9/none")
    assert code == 1
    assert "cannot migrate: Postgres was not ready within 1 s" in said
    assert "Traceback" not in said


async def test_who_waits_for_migrations_applies_none(postgres_dsn: str) -> None:
    with pytest.raises(StorageUnavailable, match="run python -m pml_learner migrate"):
        await await_migrations(postgres_dsn, "learner", "pml_learner", patience_s=0)
    session = await asyncpg.connect(postgres_dsn)
    schemas = await session.fetchval("SELECT to_regnamespace('learner')")
    await session.close()
    assert schemas is None


async def test_who_waits_opens_the_schema_once_it_is_migrated(postgres_dsn: str) -> None:
    async def opened() -> object:
        async with open_scoped_schema(
            as_service(postgres_dsn, "learner"), "learner", "pml_learner"
        ) as pool:
            return await pool.batch.fetchval("SELECT count(*) = 0 FROM inbox")

    waiting = asyncio.create_task(opened())
    code, said = await _migrate("pml_learner", postgres_dsn)
    assert code == 0, said
    assert await asyncio.wait_for(waiting, PATIENCE_S)
