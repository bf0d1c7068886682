"""The stores, and gateways, on a database that tests share."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from libs.pml_local.tests.support.databases import (
    Databases,
    Schema,
    SharedDatabase,
    shared_database,
)
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.live_workflows import LiveWorkflows
from pml_gateway.adapters.postgres.workflows import PostgresWorkflowStore
from pml_gateway.adapters.stores import Stores, postgres_stores
from services.gateway.tests.support.harness import Worlds, running_world

GATEWAY = Schema("gateway", "pml_gateway")


@pytest.fixture
def postgres_dsn(gateway_dsn: str) -> str:
    """The gateway's DSN of a fresh database with its schema."""
    return gateway_dsn


@pytest.fixture(scope="session")
async def shared(databases: Databases) -> AsyncGenerator[SharedDatabase]:
    """A database with the gateway's schema that the tests of a session share."""
    async with shared_database(databases, GATEWAY) as shared:
        yield shared


@pytest.fixture(scope="session")
async def shared_pool(shared: SharedDatabase) -> AsyncGenerator[ScopedPools]:
    """Sessions on the shared database, whatever is in it."""
    async with open_scoped_schema(shared.dsn, GATEWAY.name, GATEWAY.package) as pool:
        yield pool


@pytest.fixture
async def pool(shared: SharedDatabase, shared_pool: ScopedPools) -> ScopedPools:
    """Sessions on the shared database, which is empty."""
    await shared.empty()
    return shared_pool


@pytest.fixture
def stores(pool: ScopedPools) -> Stores:
    """The stores, empty; the outbox hands out messages at once."""
    rows = PostgresWorkflowStore(pool, patience_s=PATIENCE_S, head_start=timedelta(0))
    return replace(postgres_stores(pool, PATIENCE_S), workflows=LiveWorkflows(rows, MemoryBus()))


@pytest.fixture
def world(pool: ScopedPools) -> Worlds:
    """Starts gateways on the shared database, which is empty."""
    return partial(running_world, pool)
