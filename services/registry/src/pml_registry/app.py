"""Composition root of the registry: message → handler."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from functools import partial

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.health import Checks
from pml_common.storage.errors import map_unavailable
from pml_common.storage.pool import Pool
from pml_common.storage.schema import open_schema, storage_check
from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.adapters.code_hashes import CodeHashes
from pml_registry.adapters.minilm import MiniLmEmbedder
from pml_registry.adapters.postgres_capabilities import PostgresCapabilityStore
from pml_registry.adapters.postgres_discovery import PgvectorIndex, PostgresCandidateStore
from pml_registry.adapters.postgres_tools import PostgresToolStore
from pml_registry.entrypoints.bus.on_describe_capabilities import on_describe_capabilities
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_edges_observed import on_edges_observed
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.entrypoints.bus.on_list_capabilities import on_list_capabilities
from pml_registry.entrypoints.bus.on_list_tools import on_list_tools
from pml_registry.entrypoints.bus.on_resolve_capability import on_resolve_capability
from pml_registry.entrypoints.bus.on_set_cache_policy import on_set_cache_policy
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports import CapabilityStore, Embedder, ToolStore
from pml_registry.settings import RegistrySettings


@asynccontextmanager
async def serve(settings: RegistrySettings, bus: Bus) -> AsyncGenerator[Checks]:
    """Run the registry until the context exits."""
    async with (
        aclosing(BackgroundEmbedder(MiniLmEmbedder.load)) as embedder,
        open_schema(
            settings.postgres_dsn, "registry", "pml_registry", patience_s=settings.start_patience_s
        ) as pool,
    ):
        capabilities, tools = PostgresCapabilityStore(pool), PostgresToolStore(pool)
        await _serve_queries(bus, pool, capabilities, tools, embedder)
        await _consume_events(bus, capabilities, tools, embedder)
        yield {"postgres": storage_check(pool), "embeddings": embedder.check}


async def _serve_queries(
    bus: Bus, pool: Pool, capabilities: CapabilityStore, tools: ToolStore, embedder: Embedder
) -> None:
    unavailable = partial(QueryFailed, "unavailable")
    await bus.serve(
        catalog.RESOLVE_CAPABILITY,
        map_unavailable(partial(on_resolve_capability, capabilities=capabilities), unavailable),
    )
    await bus.serve(
        catalog.SET_CACHE_POLICY,
        map_unavailable(
            partial(on_set_cache_policy, capabilities=capabilities, tools=tools), unavailable
        ),
    )
    await bus.serve(
        catalog.DESCRIBE_CAPABILITIES,
        map_unavailable(partial(on_describe_capabilities, capabilities=capabilities), unavailable),
    )
    await bus.serve(
        catalog.LIST_CAPABILITIES,
        map_unavailable(partial(on_list_capabilities, capabilities=capabilities), unavailable),
    )
    await bus.serve(
        catalog.LIST_TOOLS, map_unavailable(partial(on_list_tools, tools=tools), unavailable)
    )
    discover = partial(
        on_discover,
        embedder=embedder,
        index=PgvectorIndex(pool),
        candidates=PostgresCandidateStore(pool),
    )
    await bus.serve(catalog.DISCOVER, map_unavailable(discover, unavailable))


async def _consume_events(
    bus: Bus, capabilities: CapabilityStore, tools: ToolStore, embedder: Embedder
) -> None:
    await bus.consume_batches(
        catalog.REGISTRY_ON_EXECUTION_ANALYZED,
        partial(
            on_execution_analyzed,
            capabilities=capabilities,
            embedder=embedder,
            hashing=CodeHashes(),
        ),
    )
    await bus.consume_batches(
        catalog.REGISTRY_ON_LEARNING_UPDATED,
        partial(on_learning_updated, capabilities=capabilities),
    )
    await bus.consume_batches(
        catalog.REGISTRY_ON_EDGES_OBSERVED, partial(on_edges_observed, tools=tools)
    )
    await bus.consume(
        catalog.REGISTRY_ON_TOOLS_LISTED,
        partial(on_tools_listed, tools=tools, embedder=embedder),
    )
