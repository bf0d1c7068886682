"""The graph of a scope: weights, PageRank, communities, paths."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.dependencies import EdgeSource, EdgeType, ShowHypergraph
from pml_common.contracts.learner import ObservedEdge
from pml_registry.domain.graph import GraphRows, Node, NoPath, Relation, ScopeGraph, pagerank
from services.registry.tests.support.builders import SCOPE

NODES = "abcdef"


def _graph(*relations: Relation, nodes: str = NODES) -> ScopeGraph:
    return ScopeGraph(GraphRows([Node(each, "tool", each) for each in nodes], relations, True))


def _edge(ends: str, type_: EdgeType = "dependency", source: EdgeSource = "observed") -> Relation:
    return Relation(ends[0], ends[1], type_, source)


@pytest.mark.parametrize(
    ("type_", "weight"),
    [
        ("dependency", 1.0),
        ("contains", 0.8),
        ("provides", 0.7),
        ("alternative", 0.6),
        ("sequence", 0.5),
    ],
)
def test_an_edge_weighs_by_its_type_and_source(type_: EdgeType, weight: float) -> None:
    assert _edge("ab", type_).weight == weight
    assert _edge("ab", type_, "inferred").weight == pytest.approx(weight * 0.7)
    assert _edge("ab", type_, "template").weight == pytest.approx(weight * 0.5)


def test_between_tools_nothing_is_an_alternative() -> None:
    assert ObservedEdge.model_json_schema()["properties"]["type"]["const"] == "sequence"


PAIRS = st.lists(
    st.tuples(
        st.sampled_from(NODES),
        st.sampled_from(NODES),
        st.sampled_from(["dependency", "contains", "sequence"]),
    ),
    max_size=20,
    unique=True,
)


@given(PAIRS)
def test_the_pagerank_is_stationary_and_sums_up_to_one(
    pairs: list[tuple[str, str, EdgeType]],
) -> None:
    relations = [Relation(one, other, type_, "observed") for one, other, type_ in pairs]
    rank = pagerank(NODES, relations)
    assert sum(rank.values()) == pytest.approx(1)
    leaving = {node: sum(r.weight for r in relations if r.from_ == node) for node in NODES}
    loose = sum(rank[node] for node in NODES if not leaving[node]) / len(NODES)
    for node in NODES:
        arriving = sum(
            rank[r.from_] * r.weight / leaving[r.from_] for r in relations if r.to == node
        )
        expected = 0.15 / len(NODES) + 0.85 * (arriving + loose)
        assert rank[node] == pytest.approx(expected, abs=1e-6)


def test_without_nodes_there_is_no_rank() -> None:
    empty = _graph(nodes="").shown(ShowHypergraph(scope=SCOPE))
    assert (empty.nodes, empty.edges, empty.communities) == ((), (), 0)


def test_nodes_with_many_edges_between_them_are_a_community() -> None:
    graph = _graph(
        *map(_edge, ("ab", "bc", "ca", "de", "ef", "fd")), _edge("cd", "sequence", "template")
    )
    found = graph.communities
    assert [found[node] for node in NODES] == [0, 0, 0, 1, 1, 1]


def test_without_edges_every_node_is_a_community() -> None:
    assert sorted(_graph().communities.values()) == list(range(len(NODES)))


def test_edges_to_unknown_nodes_are_left_out() -> None:
    assert _graph(_edge("ab"), _edge("ax"), _edge("xa")).relations == [_edge("ab")]


def test_all_relations_are_in_one_networkx_graph() -> None:
    graph = _graph(_edge("ab"), _edge("ab", "sequence"), _edge("ba"))
    assert isinstance(graph.graph, nx.MultiDiGraph)
    assert graph.graph.number_of_edges("a", "b") == 2
    assert ("a" in graph, "x" in graph) == (True, False)


def test_the_shortest_path_takes_the_heavier_edges() -> None:
    graph = _graph(
        _edge("ad", "sequence", "template"),
        _edge("ab"),
        _edge("bd", "sequence"),
        _edge("bd", "contains"),
    )
    path = graph.path("a", "d", None)
    assert [node.id for node in path.nodes] == ["a", "b", "d"]
    assert [edge.type for edge in path.edges] == ["dependency", "contains"]
    assert path.length == pytest.approx(1 + 1 / 0.8)
    alone = graph.path("a", "a", None)
    assert ([node.id for node in alone.nodes], alone.length) == (["a"], 0)


@pytest.mark.parametrize(("start", "end"), [("b", "a"), ("a", "x"), ("x", "a")])
def test_where_no_path_leads_that_is_said(start: str, end: str) -> None:
    with pytest.raises(NoPath, match=f"no path leads from {start} to {end}"):
        _graph(_edge("ab")).path(start, end, None)


def test_a_path_leads_over_nothing_that_is_private_to_others() -> None:
    nodes = [Node("a", "tool", "a"), Node("c", "tool", "c")]
    hidden = Node("b", "capability", "b", private_to="agent-7")
    graph = ScopeGraph(GraphRows([*nodes, hidden], [_edge("ab"), _edge("bc")], True))
    assert len(graph.path("a", "c", "agent-7").nodes) == 3
    with pytest.raises(NoPath):
        graph.path("a", "c", "agent-8")


def test_a_capability_contains_the_tools_of_its_text_that_are_known() -> None:
    nodes = [Node("a", "capability", "a", tools=("b", "c", "gone")), *map(_tool, "bc")]
    shown = Relation("a", "b", "contains", "observed")
    graph = ScopeGraph(GraphRows(nodes, [shown], True))
    assert graph.relations == [shown, Relation("a", "c", "contains", "inferred")]


def _tool(name: str) -> Node:
    return Node(name, "tool", name)


def test_a_scope_without_nodes_has_no_ranks() -> None:
    assert _graph(nodes="").ranks == {}
