"""The registry's databases, stores on one that tests share, and an embedder without a model."""

from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from libs.pml_local.tests.support.databases import (
    Databases,
    SharedDatabase,
    shared_database,
)
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import SIMILAR_HASH, analysed
from services.registry.tests.support.curation_driver import CurationDriver
from services.registry.tests.support.hash_embedder import HashEmbedder
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import REGISTRY, Stores, stores_on


@pytest.fixture
def postgres_dsn(registry_dsn: str) -> str:
    """The registry's DSN of a fresh database with its schema."""
    return registry_dsn


@pytest.fixture(scope="session")
async def registry_database(databases: Databases) -> AsyncIterator[SharedDatabase]:
    """The database that tests share."""
    async with shared_database(databases, REGISTRY) as shared:
        yield shared


@pytest.fixture(scope="session")
async def registry_pools(registry_database: SharedDatabase) -> AsyncIterator[ScopedPools]:
    """Sessions of the shared database, for those who empty it themselves."""
    async with open_scoped_schema(registry_database.dsn, "registry", "pml_registry") as pools:
        yield pools


@pytest.fixture
async def stores(registry_database: SharedDatabase, registry_pools: ScopedPools) -> Stores:
    """The stores, empty."""
    await registry_database.empty()
    return stores_on(registry_pools)


@pytest.fixture
async def embedder() -> AsyncGenerator[Embedder]:
    """An embedder without a model."""
    background = BackgroundEmbedder(HashEmbedder.model_name, HashEmbedder)
    yield background
    await background.aclose()


@pytest.fixture
def registry(stores: Stores, embedder: Embedder) -> StoreDriver:
    """Drives the handlers on the stores."""
    return StoreDriver(stores, embedder)


@pytest.fixture
def curation(stores: Stores, embedder: Embedder) -> CurationDriver:
    """Drives the handlers of curation on the stores."""
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
