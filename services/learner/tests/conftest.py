"""Trace stores, Postgres and in memory, for one shared suite."""

from collections.abc import AsyncGenerator

import pytest

from pml_common.storage.schema import open_schema
from pml_learner.adapters.memory_traces import MemoryTraceStore
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.ports import TraceStore


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
