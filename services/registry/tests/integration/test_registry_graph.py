"""Dependencies and the graph on real NATS and Postgres, from the events that they follow from."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from libs.pml_common.tests.support.fakes import CrashAfterCommitBus
from libs.pml_common.tests.support.harness import key_files
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import QueryFailed
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.dependencies import (
    AddDependency,
    FindPath,
    Hypergraph,
    ListDependencies,
    RemoveDependency,
    ShowHypergraph,
)
from pml_common.contracts.registry import (
    Discover,
    ListCapabilities,
    ReserveName,
    ResolveCapability,
    SettleName,
)
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_registry.app import serve
from pml_registry.settings import RegistrySettings
from services.registry.tests.support.builders import SCOPE, TrustedHashes, analysed, listed
from services.registry.tests.support.dependencies import calls, code
from services.registry.tests.support.hash_embedder import HashEmbedder

pytestmark = pytest.mark.integration

CONTENT: JsonObject = {"type": "object", "properties": {"content": {"type": "string"}}}
JSON: JsonObject = {
    "type": "object",
    "properties": {"json": {"type": "string"}},
    "required": ["json"],
}
READ = ToolDefinition(server="fs", name="read", output_schema=CONTENT)
PARSE = ToolDefinition(server="json", name="parse", input_schema=JSON)


@pytest.fixture(autouse=True)
def samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the samples' invented hashes; embed without a model."""
    monkeypatch.setattr("pml_registry.app.CodeHashes", TrustedHashes)
    monkeypatch.setattr("pml_registry.parts.search.MiniLmEmbedder.load", HashEmbedder)


@asynccontextmanager
async def _registry(bus: Bus, dsn: str) -> AsyncGenerator[None]:
    with key_files("registry") as keys:
        settings = RegistrySettings(postgres_dsn=dsn).model_copy(update=keys)
        async with serve(settings, bus):
            try:
                yield
            finally:
                await bus.drain()


@pytest.fixture
async def gateway(nats_url: str) -> AsyncGenerator[NatsBus]:
    """The bus as used by the other services."""
    bus = await NatsBus.connect(nats_url, service="gateway", identity=all_services_identity())
    yield bus
    await bus.drain()


async def _run(bus: Bus, name: str, analysis: ExecutionAnalyzed) -> None:
    """Have a program succeed under a name."""
    reserve = ReserveName(
        scope=SCOPE, workflow_id=analysis.workflow_id, name=name, analysis=analysis
    )
    await bus.request(catalog.RESERVE_NAME, reserve, timeout=30.0)
    settle = SettleName(scope=SCOPE, workflow_id=analysis.workflow_id, succeeded=True)
    await bus.request(catalog.SETTLE_NAME, settle)


async def _hypergraph(bus: Bus) -> Hypergraph:
    return await bus.request(catalog.SHOW_HYPERGRAPH, ShowHypergraph(scope=SCOPE))


async def test_a_graph_grows_with_events_and_queries(
    gateway: NatsBus, nats_url: str, postgres_dsn: str
) -> None:
    bus = await CrashAfterCommitBus.connect(
        nats_url, service="registry", identity=all_services_identity()
    )
    async with _registry(bus, postgres_dsn):
        await _run(gateway, "web:rest", analysed(code("a"), tools=["fs:read"], intent="fetch it"))
        await _run(gateway, "web:soap", analysed(code("b"), tools=["x:y"], intent="fetch it"))
        await gateway.publish(listed(READ, server="fs"))
        await gateway.publish(listed(PARSE, server="json"))
        await gateway.publish(calls(("a", "b")))
        shown: list[Hypergraph] = []

        async def types() -> bool:
            shown.append(await _hypergraph(gateway))
            kinds = sorted(edge.type for edge in shown[-1].edges)
            return kinds == ["alternative", "contains", "contains", "provides"]

        await eventually(types)
        nodes = {node.name for node in shown[-1].nodes}
        assert nodes == {"web:rest", "web:soap", "fs:read", "json:parse"}
        listing = ListDependencies(scope=SCOPE, reference="web:rest", direction="out")
        page = await gateway.request(catalog.LIST_DEPENDENCIES, listing)
        assert ("contains", 1) in {(e.edge_type, e.observed_count) for e in page.dependencies}

        add = AddDependency(
            scope=SCOPE, reference="web:rest", to="web:soap", edge_type="dependency"
        )
        assert (await gateway.request(catalog.ADD_DEPENDENCY, add)).created
        assert "dependency" in {edge.type for edge in (await _hypergraph(gateway)).edges}
        counted = ResolveCapability(scope=SCOPE, reference="web:rest", count_dependencies=True)
        record = await gateway.request(catalog.RESOLVE_CAPABILITY, counted)
        every = await gateway.request(catalog.LIST_CAPABILITIES, ListCapabilities(scope=SCOPE))
        counts = {each.name: each.dependencies_count for each in every.capabilities}
        assert counts == {"web:rest": 3, "web:soap": 3}
        assert record.dependencies_count == 3
        discover = Discover(scope=SCOPE, intent="fetch it", type="capability")
        hits = (await gateway.request(catalog.DISCOVER, discover)).hits
        needs = {hit.name: len(hit.dependencies) for hit in hits if hit.type == "capability"}
        assert needs == {"web:rest": 2, "web:soap": 0}
        path = await gateway.request(
            catalog.FIND_PATH, FindPath(scope=SCOPE, start="web:rest", end="json:parse")
        )
        assert [node.name for node in path.nodes] == ["web:rest", "fs:read", "json:parse"]

        remove = RemoveDependency(scope=SCOPE, reference="web:rest", to="web:soap")
        assert (await gateway.request(catalog.REMOVE_DEPENDENCY, remove)).removed >= 2
        with pytest.raises(QueryFailed, match="has no dependency"):
            await gateway.request(catalog.REMOVE_DEPENDENCY, remove)
        assert await gateway.dead_letters() == []


async def test_replicas_drop_a_graph_that_another_changed(
    gateway: NatsBus, nats_url: str, postgres_dsn: str
) -> None:
    one, other = [
        await NatsBus.connect(nats_url, service="registry", identity=all_services_identity())
        for _ in range(2)
    ]
    async with _registry(one, postgres_dsn), _registry(other, postgres_dsn):
        await _run(gateway, "a:one", analysed(code("a"), tools=["a:a"]))
        await _run(gateway, "a:two", analysed(code("b"), tools=["b:b"]))
        for number in range(3):
            for _ in range(8):  # so that both have built it
                await _hypergraph(gateway)
            add = AddDependency(
                scope=SCOPE,
                reference="a:one",
                to="a:two",
                edge_type=("sequence", "dependency", "contains")[number],
            )
            await gateway.request(catalog.ADD_DEPENDENCY, add)

            async def all_know(edges: int = number + 1) -> bool:
                seen = [len((await _hypergraph(gateway)).edges) for _ in range(8)]
                return set(seen) == {edges}

            await eventually(all_know)
