"""Stores in Postgres and in memory, for one contract suite."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from libs.pml_local.tests.support.databases import Databases, Schema
from pml_common.bus.memory import MemoryBus
from pml_common.storage.schema import open_schema
from pml_gateway.adapters.live_workflows import LiveWorkflows
from pml_gateway.adapters.memory.accepted_tools import MemoryAcceptedTools
from pml_gateway.adapters.memory.elicitation import MemoryElicitation
from pml_gateway.adapters.memory.ledger import MemoryCallLedger
from pml_gateway.adapters.memory.principals import MemoryPrincipalDeletions
from pml_gateway.adapters.memory.results import MemoryResults
from pml_gateway.adapters.memory.speculations import MemorySpeculatedRuns
from pml_gateway.adapters.memory.workflows import MemoryWorkflowStore
from pml_gateway.adapters.postgres.accepted_tools import PostgresAcceptedTools
from pml_gateway.adapters.postgres.elicitation import PostgresElicitation
from pml_gateway.adapters.postgres.ledger import PostgresCallLedger
from pml_gateway.adapters.postgres.outbox import PostgresOutbox
from pml_gateway.adapters.postgres.principals import PostgresPrincipalDeletions
from pml_gateway.adapters.postgres.results import PostgresResults
from pml_gateway.adapters.postgres.speculations import PostgresSpeculatedRuns
from pml_gateway.adapters.postgres.workflows import PostgresWorkflowStore
from pml_gateway.adapters.stores import Stores

GATEWAY = Schema("gateway", "pml_gateway")


@pytest.fixture
async def postgres_dsn(databases: Databases) -> AsyncIterator[str]:
    """A fresh database with the gateway's schema, dropped after the test."""
    async with databases.copy(GATEWAY) as dsn:
        yield dsn


@asynccontextmanager
async def _postgres(dsn: str) -> AsyncGenerator[Stores]:
    async with open_schema(dsn, "gateway", "pml_gateway") as pool:
        rows = PostgresWorkflowStore(pool, patience_s=10, head_start=timedelta(0))
        workflows = LiveWorkflows(rows, MemoryBus())
        results = PostgresResults(pool, patience_s=10)
        accepted = PostgresAcceptedTools(pool, patience_s=10)
        elicitation = PostgresElicitation(pool, patience_s=10)
        speculated = PostgresSpeculatedRuns(pool, patience_s=10)
        outbox, ledger = PostgresOutbox(pool), PostgresCallLedger(pool)
        deletions = PostgresPrincipalDeletions(pool)
        yield Stores(
            workflows, outbox, ledger, results, accepted, elicitation, speculated, deletions
        )


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.integration)])
def database(request: pytest.FixtureRequest) -> str | None:
    """The database of the stores under test; None: in memory."""
    return None if request.param == "memory" else request.getfixturevalue("postgres_dsn")


@pytest.fixture
async def stores(database: str | None) -> AsyncGenerator[Stores]:
    """Each kind of stores, empty."""
    if database is not None:
        async with _postgres(database) as stores:
            yield stores
        return
    kept = MemoryWorkflowStore()
    workflows = LiveWorkflows(kept, MemoryBus())
    ledger, results, speculated = MemoryCallLedger(), MemoryResults(), MemorySpeculatedRuns(kept)
    kept.erasing += [ledger.erase, results.erase, speculated.erase]
    accepted, elicitation = MemoryAcceptedTools(), MemoryElicitation()
    deletions = MemoryPrincipalDeletions()
    yield Stores(
        workflows, kept.outbox, ledger, results, accepted, elicitation, speculated, deletions
    )
