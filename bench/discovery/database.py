"""The registry's schema in an embedded Postgres."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from libs.pml_local.tests.support.databases import Databases
from libs.pml_local.tests.support.harness import reachable_folder, running_postgres
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from services.registry.tests.support.stores import REGISTRY


@asynccontextmanager
async def running_databases() -> AsyncGenerator[Databases]:
    """Run a Postgres without durability until the context exits."""
    with reachable_folder() as folder:
        async with running_postgres(folder) as server:
            yield Databases(server)


@asynccontextmanager
async def registry_pools(databases: Databases) -> AsyncGenerator[ScopedPools]:
    """Open the registry's schema, empty, until the context exits."""
    async with (
        databases.copy(REGISTRY) as dsn,
        open_scoped_schema(dsn, REGISTRY.name, REGISTRY.package) as pools,
    ):
        yield pools
