"""The registry's stores, in Postgres and in memory, and an embedder without a model."""

from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from libs.pml_local.tests.support.databases import Databases, Schema
from pml_common.storage.schema import open_scoped_schema
from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.adapters.hash_embedder import HashEmbedder
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import SIMILAR_HASH, analysed
from services.registry.tests.support.curation_driver import CurationDriver
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores, memory_stores, postgres_stores

REGISTRY = Schema("registry", "pml_registry", with_roles=True)


@pytest.fixture
async def postgres_dsn(databases: Databases) -> AsyncIterator[str]:
    """A fresh database with the registry's schema, dropped after the test."""
    async with databases.copy(REGISTRY) as dsn:
        yield dsn


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.integration)])
def registry_database(request: pytest.FixtureRequest) -> str | None:
    """DSN of the stores under test; None: in memory."""
    return None if request.param == "memory" else request.getfixturevalue("postgres_dsn")


@pytest.fixture
async def stores(registry_database: str | None) -> AsyncGenerator[Stores]:
    """Each kind of store, empty."""
    if registry_database is None:
        yield memory_stores()
        return
    async with open_scoped_schema(registry_database, "registry", "pml_registry") as pools:
        yield postgres_stores(pools)


@pytest.fixture
async def embedder() -> AsyncGenerator[Embedder]:
    """An embedder without a model."""
    background = BackgroundEmbedder(HashEmbedder)
    yield background
    await background.aclose()


@pytest.fixture
def registry(stores: Stores, embedder: Embedder) -> StoreDriver:
    """Drives the handlers on each kind of store."""
    return StoreDriver(stores, embedder)


@pytest.fixture
def curation(stores: Stores, embedder: Embedder) -> CurationDriver:
    """Drives the handlers of curation on each kind of store."""
    return CurationDriver(stores, embedder)


@pytest.fixture
async def known(registry: StoreDriver) -> StoreDriver:
    """One record, `fs:ensure`, with two versions."""
    await registry.named("fs:ensure", analysed())
    better = analysed(SIMILAR_HASH, intent="make sure")
    await registry.reserve("fs:ensure", better, update=True, tag="v1.1.0")
    await registry.settle(better)
    registry.published.clear()
    return registry
