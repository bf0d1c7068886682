"""Trace stores, Postgres and in memory, for one shared suite."""

from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from libs.pml_local.tests.support.databases import Databases, Schema
from pml_common.storage.schema import open_schema
from pml_learner.adapters.memory_traces import MemoryTraceStore
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.ports import TraceStore

LEARNER = Schema("learner", "pml_learner")


@pytest.fixture
async def postgres_dsn(databases: Databases) -> AsyncIterator[str]:
    """A fresh database with the learner's schema, dropped after the test."""
    async with databases.copy(LEARNER) as dsn:
        yield dsn


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.integration)])
def trace_database(request: pytest.FixtureRequest) -> str | None:
    """DSN of the store under test; None: in memory."""
    return None if request.param == "memory" else request.getfixturevalue("postgres_dsn")


@pytest.fixture
async def trace_store(trace_database: str | None) -> AsyncGenerator[TraceStore]:
    """Each kind of store, empty."""
    if trace_database is None:
        yield MemoryTraceStore()
        return
    async with open_schema(trace_database, "learner", "pml_learner") as pool:
        yield PostgresTraceStore(pool)
