"""Composition root of the registry: message → handler."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from pml_common.background import background, run_periodically, run_until_done
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.health import Checks
from pml_common.service import signing_key_of, trusted_keys_of
from pml_common.storage.errors import map_unavailable
from pml_common.storage.schema import open_scoped_schema, storage_check
from pml_registry.adapters.bus_outcomes import BusWorkflowOutcomes
from pml_registry.adapters.chat_names import ChatNameModel
from pml_registry.adapters.code_hashes import CodeHashes
from pml_registry.adapters.postgres_capabilities import PostgresCapabilityStore
from pml_registry.adapters.postgres_curation import PostgresCurationStore
from pml_registry.adapters.postgres_dependencies import PostgresDependencyStore
from pml_registry.adapters.postgres_discovery import PostgresCandidateStore
from pml_registry.adapters.postgres_edges import PostgresEdgeStore
from pml_registry.adapters.postgres_graph import PostgresGraphStore
from pml_registry.adapters.postgres_names import PostgresNameStore
from pml_registry.adapters.postgres_records import PostgresRecordStore
from pml_registry.adapters.postgres_signatures import PostgresSignatureStore
from pml_registry.adapters.postgres_tools import PostgresToolStore
from pml_registry.adapters.signed_mark import SignedMark
from pml_registry.adapters.version_keys import VersionKeys
from pml_registry.application.curation import Curator
from pml_registry.application.fading import FADE_EVERY_S, Fading
from pml_registry.application.graphs import GraphChanges, Provides, ScopeGraphs
from pml_registry.application.naming import Naming
from pml_registry.application.record_service import RecordService
from pml_registry.application.relations import Relations
from pml_registry.application.resolution import Resolution
from pml_registry.application.signing_versions import SigningVersions
from pml_registry.application.version_checks import CheckedCapabilities, VersionChecks
from pml_registry.domain.reservations import LAPSES_AFTER
from pml_registry.entrypoints.bus.on_capability_changed import (
    on_capability_changed,
    on_capability_listed,
    on_graph_changed,
)
from pml_registry.entrypoints.bus.on_catalog_changed import on_catalog_changed
from pml_registry.entrypoints.bus.on_curate import on_curate
from pml_registry.entrypoints.bus.on_dependencies import (
    on_add_dependency,
    on_list_dependencies,
    on_remove_dependency,
)
from pml_registry.entrypoints.bus.on_describe_capabilities import on_describe_capabilities
from pml_registry.entrypoints.bus.on_edges_observed import on_edges_observed
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.entrypoints.bus.on_graph_queries import on_find_path, on_show_hypergraph
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.entrypoints.bus.on_lift_capability import on_lift_capability
from pml_registry.entrypoints.bus.on_list_capabilities import on_list_capabilities
from pml_registry.entrypoints.bus.on_list_tools import on_list_tools
from pml_registry.entrypoints.bus.on_merge import Merging, on_merge_capabilities, on_plan_merge
from pml_registry.entrypoints.bus.on_outputs_observed import on_outputs_observed
from pml_registry.entrypoints.bus.on_records import (
    on_change_record,
    on_describe_record,
    on_lookup_record,
    on_query_records,
    on_read_history,
    on_whois_record,
)
from pml_registry.entrypoints.bus.on_reserve_name import on_reserve_name
from pml_registry.entrypoints.bus.on_resolve_capability import on_resolve_capability
from pml_registry.entrypoints.bus.on_save_capability import Saving, on_save_capability
from pml_registry.entrypoints.bus.on_set_cache_policy import on_set_cache_policy
from pml_registry.entrypoints.bus.on_settle_name import on_settle_name
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.entrypoints.bus.with_dependencies import (
    list_counted,
    resolve_counted,
)
from pml_registry.parts.evidence import keep_embedded, serve_evidence, use_learning
from pml_registry.parts.search import search_of, serve_search
from pml_registry.ports import CapabilityStore, ToolStore
from pml_registry.ports.curation import NameModel
from pml_registry.ports.graph import DependencyStore
from pml_registry.ports.vectors import Embedder
from pml_registry.settings import RegistrySettings

_OVERDUE_AFTER_S = 15.0
"""Seconds between two looks for changes whose messages were not published."""
_RETRY_S = 5.0
"""Seconds until the signing of stored versions is tried again after an outage."""


@asynccontextmanager
async def serve(settings: RegistrySettings, bus: Bus) -> AsyncGenerator[Checks]:
    """Run the registry until the context exits."""
    async with (
        open_scoped_schema(
            settings.postgres_dsn,
            "registry",
            "pml_registry",
            patience_s=settings.start_patience_s,
        ) as pools,
        search_of(settings, pools) as search,
    ):
        embedder = search.embedder
        key, trusted = signing_key_of("registry", settings), trusted_keys_of(settings)
        signing = VersionKeys(key, trusted, CodeHashes())
        mark = SignedMark(settings.registry_signed_mark)
        checks = VersionChecks(signing, settings.registry_verified_runs, not mark.is_set)
        signing_versions = SigningVersions(PostgresSignatureStore(pools), checks, mark.set)
        capabilities = CheckedCapabilities(PostgresCapabilityStore(pools, signing), checks)
        tools = PostgresToolStore(pools)
        names, outcomes = PostgresNameStore(pools, signing), BusWorkflowOutcomes(bus)
        naming = Naming(names, embedder, outcomes, bus.publish, bus.now)
        records = PostgresRecordStore(pools, signing)
        resolution = Resolution(records, capabilities)
        service = RecordService(records, resolution, embedder, bus.publish)
        dependencies, graph_rows = PostgresDependencyStore(pools), PostgresGraphStore(pools)
        graphs = ScopeGraphs(graph_rows)
        changes = GraphChanges(graphs, bus.publish)
        provides = Provides(graph_rows, changes)
        await _serve_queries(bus, resolution, tools, dependencies)
        candidates = PostgresCandidateStore(pools)
        learning = use_learning(pools, search, candidates)
        await serve_search(bus, search, candidates, dependencies, learning.evidence)
        await serve_evidence(bus, learning)
        merging = Merging(service, tools, embedder, CodeHashes())
        await _serve_records(bus, merging, checks)
        await _serve_naming(bus, naming, capabilities, embedder)
        curator = Curator(
            PostgresCurationStore(pools), naming, CodeHashes(), _name_model(settings), bus.now
        )
        await _serve_curation(bus, curator, resolution, embedder)
        await _serve_graph(bus, resolution, dependencies, changes)
        edges = PostgresEdgeStore(pools)
        await _consume_events(bus, capabilities, tools, embedder)
        await bus.consume_batches(
            catalog.REGISTRY_ON_EDGES_OBSERVED,
            partial(on_edges_observed, edges=edges, dependencies=dependencies, now=bus.now),
        )
        relations = Relations(dependencies, embedder, search.index)
        await _follow_changes(bus, relations, provides, graphs)
        every_s = LAPSES_AFTER.total_seconds()
        curation = partial(curator.look, settings.registry_curation_after)
        async with background(
            [
                run_periodically(naming.look_at_lapsed, every_s),
                run_periodically(curation, every_s),
                run_periodically(service.publish_overdue, _OVERDUE_AFTER_S),
                run_until_done(signing_versions.sign_all, _RETRY_S),
                run_periodically(provides.catch_up, every_s, first_after_s=every_s),
                run_periodically(Fading(edges, bus.now).look, FADE_EVERY_S, first_after_s=every_s),
                keep_embedded(learning),
                *(work() for work in search.upkeep),
            ]
        ):
            yield {"postgres": storage_check(pools.batch), **search.checks}


async def _serve_queries(
    bus: Bus,
    resolution: Resolution,
    tools: ToolStore,
    dependencies: DependencyStore,
) -> None:
    unavailable, capabilities = partial(QueryFailed, "unavailable"), resolution.capabilities
    resolve = partial(on_resolve_capability, resolution=resolution)
    resolve_counting = partial(resolve_counted, resolve=resolve, dependencies=dependencies)
    await bus.serve(catalog.RESOLVE_CAPABILITY, map_unavailable(resolve_counting, unavailable))
    await bus.serve(
        catalog.SET_CACHE_POLICY,
        map_unavailable(
            partial(on_set_cache_policy, resolution=resolution, tools=tools), unavailable
        ),
    )
    await bus.serve(
        catalog.DESCRIBE_CAPABILITIES,
        map_unavailable(partial(on_describe_capabilities, resolution=resolution), unavailable),
    )
    listed = partial(on_list_capabilities, capabilities=capabilities)
    list_counting = partial(list_counted, listed=listed, dependencies=dependencies)
    await bus.serve(catalog.LIST_CAPABILITIES, map_unavailable(list_counting, unavailable))
    await bus.serve(
        catalog.LIST_TOOLS, map_unavailable(partial(on_list_tools, tools=tools), unavailable)
    )


async def _serve_records(bus: Bus, merging: Merging, checks: VersionChecks) -> None:
    unavailable, service = partial(QueryFailed, "unavailable"), merging.service
    resolution, records = service.resolution, service.records
    lookup = partial(on_lookup_record, resolution=resolution)
    await bus.serve(catalog.LOOKUP_RECORD, map_unavailable(lookup, unavailable))
    whois = partial(on_whois_record, resolution=resolution, records=records, checks=checks)
    await bus.serve(catalog.WHOIS_RECORD, map_unavailable(whois, unavailable))
    query = partial(on_query_records, records=records)
    await bus.serve(catalog.QUERY_RECORDS, map_unavailable(query, unavailable))
    history = partial(on_read_history, resolution=resolution, records=records)
    await bus.serve(catalog.READ_HISTORY, map_unavailable(history, unavailable))
    change = partial(on_change_record, service=service)
    await bus.serve(catalog.CHANGE_RECORD, map_unavailable(change, unavailable))
    describe = partial(on_describe_record, service=service)
    await bus.serve(catalog.DESCRIBE_RECORD, map_unavailable(describe, unavailable))
    plan = partial(on_plan_merge, merging=merging)
    await bus.serve(catalog.PLAN_MERGE, map_unavailable(plan, unavailable))
    merge = partial(on_merge_capabilities, merging=merging)
    await bus.serve(catalog.MERGE_CAPABILITIES, map_unavailable(merge, unavailable))


async def _serve_naming(
    bus: Bus, naming: Naming, capabilities: CapabilityStore, embedder: Embedder
) -> None:
    unavailable = partial(QueryFailed, "unavailable")
    reserve = partial(
        on_reserve_name,
        naming=naming,
        capabilities=capabilities,
        embedder=embedder,
        hashing=CodeHashes(),
    )
    await bus.serve(catalog.RESERVE_NAME, map_unavailable(reserve, unavailable))
    settle = partial(on_settle_name, naming=naming)
    await bus.serve(catalog.SETTLE_NAME, map_unavailable(settle, unavailable))


async def _serve_graph(
    bus: Bus, resolution: Resolution, dependencies: DependencyStore, changes: GraphChanges
) -> None:
    unavailable = partial(QueryFailed, "unavailable")
    resolve = partial(on_resolve_capability, resolution=resolution)
    add = partial(on_add_dependency, resolve=resolve, dependencies=dependencies, changes=changes)
    await bus.serve(catalog.ADD_DEPENDENCY, map_unavailable(add, unavailable))
    remove = partial(
        on_remove_dependency, resolve=resolve, dependencies=dependencies, changes=changes
    )
    await bus.serve(catalog.REMOVE_DEPENDENCY, map_unavailable(remove, unavailable))
    listed = partial(on_list_dependencies, resolve=resolve, dependencies=dependencies)
    await bus.serve(catalog.LIST_DEPENDENCIES, map_unavailable(listed, unavailable))
    shown = partial(on_show_hypergraph, graphs=changes.graphs)
    await bus.serve(catalog.SHOW_HYPERGRAPH, map_unavailable(shown, unavailable))
    path = partial(on_find_path, graphs=changes.graphs, resolve=resolve)
    await bus.serve(catalog.FIND_PATH, map_unavailable(path, unavailable))


async def _follow_changes(
    bus: Bus, relations: Relations, provides: Provides, graphs: ScopeGraphs
) -> None:
    await bus.listen(catalog.CAPABILITY_CHANGED, partial(on_capability_changed, graphs=graphs))
    await bus.listen(catalog.GRAPH_CHANGED, partial(on_graph_changed, graphs=graphs))
    await bus.consume_batches(
        catalog.REGISTRY_ON_CAPABILITY_CHANGED, partial(on_capability_listed, relations=relations)
    )
    await bus.consume(
        catalog.REGISTRY_ON_CATALOG_CHANGED, partial(on_catalog_changed, provides=provides)
    )


def _name_model(settings: RegistrySettings) -> NameModel | None:
    if settings.registry_curation_url is None:
        return None
    key = settings.registry_curation_api_key
    return ChatNameModel(
        settings.registry_curation_url,
        settings.registry_curation_model,
        None if key is None else key.get_secret_value(),
        timeout_s=settings.registry_curation_timeout_s,
    )


async def _serve_curation(
    bus: Bus, curator: Curator, resolution: Resolution, embedder: Embedder
) -> None:
    unavailable = partial(QueryFailed, "unavailable")
    curate = partial(on_curate, curator=curator, resolution=resolution)
    await bus.serve(catalog.CURATE, map_unavailable(curate, unavailable))
    lift = partial(on_lift_capability, curator=curator, resolution=resolution)
    await bus.serve(catalog.LIFT_CAPABILITY, map_unavailable(lift, unavailable))
    saving = Saving(curator, resolution, embedder, curator.hashing)
    save = partial(on_save_capability, saving=saving)
    await bus.serve(catalog.SAVE_CAPABILITY, map_unavailable(save, unavailable))


async def _consume_events(
    bus: Bus,
    capabilities: CapabilityStore,
    tools: ToolStore,
    embedder: Embedder,
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
        partial(on_learning_updated, capabilities=capabilities, embedder=embedder),
    )
    await bus.consume(
        catalog.REGISTRY_ON_TOOLS_LISTED,
        partial(on_tools_listed, tools=tools, embedder=embedder),
    )
    await bus.consume(
        catalog.REGISTRY_ON_OUTPUTS_OBSERVED, partial(on_outputs_observed, tools=tools)
    )
