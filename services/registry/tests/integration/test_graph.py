"""The graph of a scope and its provides edges."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal
from uuid import uuid4

import pytest

from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.contracts.base import Message
from pml_common.contracts.dependencies import GraphChanged
from pml_common.contracts.registry import CapabilityChanged, CatalogChanged
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Coverage
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_registry.application.graphs import GraphChanges, ScopeGraphs, graph_changed
from pml_registry.domain.graph import GraphRows
from pml_registry.domain.provides import Ends, ProvidesChange, provides_change
from pml_registry.entrypoints.bus.on_capability_changed import (
    on_capability_changed,
    on_graph_changed,
)
from pml_registry.entrypoints.bus.on_catalog_changed import on_catalog_changed
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.graph import Compare, GraphStore
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import ELSEWHERE, SCOPE, analysed, edges, listed
from services.registry.tests.support.dependencies import GraphDriver, calls, code
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

STRING: JsonObject = {"type": "string"}


def schema(*required: str) -> JsonObject:
    return {
        "type": "object",
        "properties": dict.fromkeys(required, STRING),
        "required": [*required],
    }


READ = ToolDefinition(
    server="fs", name="read", input_schema=schema("path"), output_schema=schema("content")
)
PARSE = ToolDefinition(
    server="json", name="parse", input_schema=schema("json"), output_schema=schema("body")
)
POST = ToolDefinition(server="http", name="post", input_schema=schema("url", "body"))


@pytest.fixture
def graph(stores: Stores, embedder: Embedder) -> GraphDriver:
    """Drives the handlers."""
    return GraphDriver(stores, embedder)


async def _list(
    graph: GraphDriver,
    embedder: Embedder,
    server: str,
    *tools: ToolDefinition,
    scope: Scope = SCOPE,
) -> Sequence[Message]:
    """A server lists its tools; return what is published after the provides edges are computed."""
    message = listed(*tools, server=server, scope=scope)
    said: list[Message] = []
    for changed in await on_tools_listed(message, graph.stores.tools, embedder):
        assert isinstance(changed, CatalogChanged)
        for _ in range(2):  # delivered twice
            said += await on_catalog_changed(changed, graph.provides)
        graph.graphs.drop(scope)
    return said


async def _provides(graph: GraphDriver) -> list[str]:
    shown = await graph.hypergraph()
    return sorted(
        f"{edge.from_}>{edge.to}:{edge.coverage}" for edge in shown.edges if edge.type == "provides"
    )


async def test_tools_that_are_listed_get_provides_edges(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await _list(graph, embedder, "fs", READ)
    await _list(graph, embedder, "json", PARSE)
    said = await _list(graph, embedder, "http", POST)
    assert {type(message) for message in said} == {GraphChanged}
    assert len({message.message_id for message in said}) == 1
    assert await _provides(graph) == [
        "fs:read>http:post:partial",
        "fs:read>json:parse:strict",
        "json:parse>http:post:partial",
    ]


async def test_a_provides_edge_shows_both_schemas_and_the_mapping(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await _list(graph, embedder, "fs", READ)
    await _list(graph, embedder, "json", PARSE)
    (edge,) = (await graph.hypergraph()).edges
    assert (edge.from_, edge.to, edge.type, edge.source) == (
        "fs:read",
        "json:parse",
        "provides",
        "inferred",
    )
    assert edge.weight == pytest.approx(0.7 * 0.7)
    assert edge.provider_output_schema == READ.output_schema
    assert edge.consumer_input_schema == PARSE.input_schema
    (field,) = edge.field_mapping
    assert (field.from_field, field.to_field, field.type_compatible) == ("content", "json", True)


async def test_a_changed_or_removed_tool_changes_its_provides_edges(
    graph: GraphDriver, embedder: Embedder
) -> None:
    for tool in (READ, PARSE, POST):
        await _list(graph, embedder, tool.server, tool)
    silent = READ.model_copy(update={"output_schema": None})
    await _list(graph, embedder, "fs", silent)
    assert await _provides(graph) == ["json:parse>http:post:partial"]
    whole = POST.model_copy(update={"input_schema": schema("body")})
    await _list(graph, embedder, "http", whole)
    assert await _provides(graph) == ["json:parse>http:post:strict"]
    await _list(graph, embedder, "http")
    assert await _provides(graph) == []


async def test_servers_that_list_at_once_are_compared_with_each_other(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await asyncio.gather(
        *(_list(graph, embedder, tool.server, tool) for tool in (READ, PARSE, POST))
    )
    assert len(await _provides(graph)) == 3


async def test_only_changed_tools_are_compared(graph: GraphDriver, embedder: Embedder) -> None:
    await _list(graph, embedder, "fs", READ)
    message = listed(PARSE, server="json")
    await on_tools_listed(message, graph.stores.tools, embedder)
    compared: list[Sequence[str]] = []

    def compare(
        tools: Sequence[ToolDefinition], stale: Sequence[str], stored: Mapping[Ends, Coverage]
    ) -> ProvidesChange:
        compared.append(stale)
        return provides_change(tools, stale, stored)

    assert await graph.stores.graph.refresh_provides(SCOPE, compare)
    assert await graph.stores.graph.refresh_provides(SCOPE, compare) is None
    assert compared == [["json:parse"]]


async def test_a_catalog_of_which_nobody_told_is_caught_up_with(
    graph: GraphDriver, embedder: Embedder
) -> None:
    for scope in (SCOPE, ELSEWHERE):
        for tool in (READ, PARSE):
            message = listed(tool, server=tool.server, scope=scope)
            await on_tools_listed(message, graph.stores.tools, embedder)
    await graph.provides.catch_up()
    assert sorted(str(message.scope) for message in graph.said) == [str(SCOPE), str(ELSEWHERE)]
    assert await _provides(graph) == ["fs:read>json:parse:strict"]
    graph.said.clear()
    await graph.provides.catch_up()
    assert graph.said == []


async def test_ac05_capabilities_and_tools_are_in_one_graph(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await _list(graph, embedder, "ci", *(ToolDefinition(server="ci", name=n) for n in ("make",)))
    deploy, build = await graph.pair()
    await graph.add("ci:deploy", "ci:build")
    await graph.observe(calls(("a", "b"), runs=3), edges(("ci:make", "ci:push")))
    shown = await graph.hypergraph()
    one, other = str(deploy.capability_id), str(build.capability_id)
    assert {(node.id, node.kind, node.name) for node in shown.nodes} == {
        ("ci:make", "tool", "ci:make"),
        (one, "capability", "ci:deploy"),
        (other, "capability", "ci:build"),
    }
    found = {(e.from_, e.to, e.type, e.source): e.weight for e in shown.edges}
    assert found == {
        (one, other, "contains", "observed"): pytest.approx(0.8),
        (one, other, "dependency", "template"): pytest.approx(0.5),
        (other, "ci:make", "contains", "inferred"): pytest.approx(0.8 * 0.7),
    }
    assert sum(node.pagerank for node in shown.nodes) == pytest.approx(1)
    assert shown.nodes[0].id == "ci:make"
    assert {node.community for node in shown.nodes} == {0}
    assert shown.complete


async def test_ac06_ac12_the_hypergraph_shows_capabilities_as_edges_between_their_tools(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await _list(graph, embedder, "fs", READ)
    both = await graph.has("a:both", "a", tools=["fs:read", "fs:gone"])
    one = await graph.has("a:one", "b", tools=["fs:read"])
    await graph.add("a:both", "a:one", "alternative")
    shown = await graph.hypergraph()
    assert {each.capability_id: each.tools for each in shown.hyperedges} == {
        str(both.capability_id): ("fs:read", "fs:gone"),
        str(one.capability_id): ("fs:read",),
    }
    assert (str(both.capability_id), str(one.capability_id), "alternative") in {
        (edge.from_, edge.to, edge.type) for edge in shown.edges
    }
    part = await graph.hypergraph(limit=2, edge_limit=1)
    assert (len(part.nodes), len(part.edges)) == (2, 1)
    assert (part.total_nodes, part.total_edges) == (3, 3)


async def test_between_tools_are_the_observed_sequences_and_no_alternative(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await _list(graph, embedder, "http", POST)
    await _list(graph, embedder, "json", PARSE)
    await graph.observe(edges(("http:post", "json:parse"), runs=3))
    kinds = {(edge.from_, edge.type, edge.source) for edge in (await graph.hypergraph()).edges}
    assert kinds == {
        ("http:post", "sequence", "observed"),
        ("json:parse", "provides", "inferred"),
    }


async def test_a_graph_that_is_too_large_says_that_it_is_not_complete(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await graph.pair()
    await graph.add("ci:deploy", "ci:build")
    await graph.add("ci:deploy", "ci:build", "contains")
    await _list(graph, embedder, "fs", READ)
    for nodes, most_edges, complete in ((2, 2, True), (1, 2, False), (2, 1, False)):
        rows = await graph.stores.graph.rows(SCOPE, nodes, most_edges)
        assert rows.complete is complete
    assert len((await graph.stores.graph.rows(SCOPE, 1, 2)).nodes) == 2


async def test_a_path_leads_over_tools_and_capabilities(
    graph: GraphDriver, embedder: Embedder
) -> None:
    await _list(graph, embedder, "fs", READ)
    await _list(graph, embedder, "json", PARSE)
    await graph.has("a:outer", "a", tools=[])
    await graph.has("fs:read_all", "b", tools=["fs:read"])
    await graph.add("a:outer", "fs:read_all", "contains")
    path = await graph.path("cap:a:outer", "json:parse")
    assert [node.name for node in path.nodes] == [
        "a:outer",
        "fs:read_all",
        "fs:read",
        "json:parse",
    ]
    assert [edge.type for edge in path.edges] == ["contains", "contains", "provides"]
    assert path.length == pytest.approx(1 / 0.4 + 1 / 0.56 + 1 / 0.49)
    for start, end in (("json:parse", "a:outer"), ("a:outer", "nobody:knows")):
        with pytest.raises(QueryFailed) as refused:
            await graph.path(start, end)
        assert refused.value.code == "not_found"


async def test_what_is_not_listed_is_on_no_path(graph: GraphDriver) -> None:
    await graph.pair()
    analysis = analysed(code("d"))
    await graph.registry.analysed(analysis)
    with pytest.raises(QueryFailed, match="it is not listed"):
        await graph.path("ci:deploy", str(analysis.capability.capability_id))


class CountingStore(GraphStore):
    """Counts how often rows are read; `held` keeps a read waiting."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self.reads: list[Scope] = []
        self.reading = asyncio.Event()
        self.held = asyncio.Event()
        self.held.set()

    async def rows(self, scope: Scope, most_nodes: int, most_edges: int) -> GraphRows:
        self.reads.append(scope)
        self.reading.set()
        rows = await self._store.rows(scope, most_nodes, most_edges)
        await self.held.wait()
        return rows

    async def refresh_provides(self, scope: Scope, compare: Compare) -> None:
        await self._store.refresh_provides(scope, compare)

    async def stale_scopes(self, limit: int) -> Sequence[Scope]:
        return await self._store.stale_scopes(limit)


async def test_a_graph_is_built_once_for_all_who_ask_until_it_changes(stores: Stores) -> None:
    store = CountingStore(stores.graph)
    graphs = ScopeGraphs(store)
    first, *rest = await asyncio.gather(*(graphs.graph(SCOPE) for _ in range(5)))
    assert all(each is first for each in rest)
    assert store.reads == [SCOPE]
    await on_graph_changed(graph_changed(SCOPE, uuid4()), graphs)
    assert await graphs.graph(SCOPE) is not first
    expected: list[tuple[Literal["learned", "named"], int]] = [("learned", 2), ("named", 3)]
    for change, reads in expected:
        changed = CapabilityChanged(
            scope=SCOPE, event_id=uuid4(), capability_id=uuid4(), name="a:b", change=change
        )
        await on_capability_changed(changed, graphs)
        await graphs.graph(SCOPE)
        assert len(store.reads) == reads


async def test_a_graph_that_changed_while_it_was_built_is_not_kept(stores: Stores) -> None:
    store = CountingStore(stores.graph)
    graphs = ScopeGraphs(store)
    store.held.clear()
    async with asyncio.TaskGroup() as tasks:
        building = tasks.create_task(graphs.graph(SCOPE))
        await store.reading.wait()
        graphs.drop(SCOPE)
        store.held.set()
    assert await graphs.graph(SCOPE) is not building.result()


async def test_so_many_graphs_are_kept_and_not_for_ever(stores: Stores) -> None:
    store, now = CountingStore(stores.graph), [0.0]
    graphs = ScopeGraphs(store, most_scopes=2, clock=lambda: now[0])
    scopes = [Scope(org="acme", project=f"p{n}") for n in range(3)]
    for scope in (*scopes, scopes[2], scopes[1], scopes[0]):
        await graphs.graph(scope)
    assert store.reads == [*scopes, scopes[0]]
    now[0] = 31.0
    await graphs.graph(scopes[0])
    assert len(store.reads) == 5


async def test_a_change_that_cannot_be_announced_holds_here_at_once(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(_: Message) -> None:
        raise BusUnavailable("NATS does not answer")

    store = CountingStore(stores.graph)
    graphs = ScopeGraphs(store)
    await graphs.graph(SCOPE)
    await GraphChanges(graphs, away).announce(SCOPE)
    await graphs.graph(SCOPE)
    assert len(store.reads) == 2
    assert "other replicas are not told" in caplog.text
