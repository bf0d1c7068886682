"""Clusters of earlier releases."""

from pathlib import Path

import asyncpg
import pytest

from libs.pml_local.tests.support.harness import reachable_folder, running_postgres
from pml_local import postgres_cluster

pytestmark = pytest.mark.integration

_MAY = "SELECT rolcreaterole FROM pg_roles WHERE rolname = 'pml'"


async def _may_make_roles(folder: Path) -> bool:
    async with running_postgres(folder) as server:
        session = await asyncpg.connect(server.dsn())
        try:
            return await session.fetchval(_MAY)
        finally:
            await session.close()


def _former_setup(password: str) -> list[tuple[str, str]]:
    role = f"CREATE ROLE pml LOGIN CREATEDB PASSWORD '{password}';\n"
    return [("postgres", f"{role}CREATE DATABASE pml OWNER pml;\n")]


async def test_a_cluster_from_before_roles_is_brought_up_to_date_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    password = "of-the-cluster"
    monkeypatch.setattr("libs.pml_local.tests.support.harness.secrets.token_hex", lambda: password)
    monkeypatch.setattr(postgres_cluster, "_setup", _former_setup)
    with reachable_folder() as folder:
        setup = folder / "postgres" / "data.setup"
        assert not await _may_make_roles(folder)
        assert not await _may_make_roles(folder)  # its file says that it is up to date
        setup.unlink()
        assert await _may_make_roles(folder)
        assert setup.read_text() == "2\n"
