"""The learner's databases, and a trace store on one that tests share."""

from collections.abc import AsyncIterator

import pytest

from libs.pml_local.tests.support.databases import (
    Databases,
    Schema,
    SharedDatabase,
    shared_database,
)
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_learner.adapters.postgres_traces import PostgresTraceStore

LEARNER = Schema("learner", "pml_learner")


@pytest.fixture
def postgres_dsn(learner_dsn: str) -> str:
    """The learner's DSN of a fresh database with its schema."""
    return learner_dsn


@pytest.fixture(scope="session")
async def learner_database(databases: Databases) -> AsyncIterator[SharedDatabase]:
    """The database that tests share."""
    async with shared_database(databases, LEARNER) as shared:
        yield shared


@pytest.fixture(scope="session")
async def learner_pool(learner_database: SharedDatabase) -> AsyncIterator[ScopedPools]:
    """Sessions of the shared database, for those who empty it themselves."""
    async with open_scoped_schema(learner_database.dsn, "learner", "pml_learner") as pool:
        yield pool


@pytest.fixture
async def trace_store(
    learner_database: SharedDatabase, learner_pool: ScopedPools
) -> PostgresTraceStore:
    """An empty trace store."""
    await learner_database.empty()
    return PostgresTraceStore(learner_pool)
