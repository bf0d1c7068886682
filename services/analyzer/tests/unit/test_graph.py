"""A structure as a graph: layers, successors, dominators."""

from collections.abc import Sequence

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.pml_common.tests.support.builders import node, structure
from pml_analysis.structure.graph import FLOW, digraph, dominators, layers, reachable
from pml_common.contracts.structure import StaticStructure
from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, analysed

BRANCHES = structure("n1 d1 n2 n3 n4", "n1>d1 d1>n2:true d1>n3:false n2>n4 n3>n4")
LOOP = structure("n1 l1 n2 n3 n4", "n1>l1 l1>n2* n2>n3 n3>l1 l1>n4")
LOOP_FIRST = structure("l1 n1 l2 n2 n3", "l1>n1* n1>l2 l2>n2* n2>l2 l2>l1 l1>n3")


def test_every_relation_of_two_nodes_is_kept() -> None:
    graph = digraph(structure("d1 n1", "d1>n1:case:a d1>n1:case:b d1~n1"))
    edges = graph.edges["d1", "n1"]["edges"]
    assert [(one.type, one.outcome) for one in edges] == [
        ("conditional", "case:a"),
        ("conditional", "case:b"),
        ("provides", None),
    ]
    assert graph.nodes["d1"]["node"] == node("d1")


def test_only_the_edges_that_are_asked_for_are_there() -> None:
    graph = digraph(structure("n1 n2 n3", "n1>n2 n1~n3 n1~n2"), ["provides"])
    assert set(graph.edges) == {("n1", "n3"), ("n1", "n2")}
    assert [one.type for one in graph.edges["n1", "n2"]["edges"]] == ["provides"]


def test_an_edge_to_a_node_that_is_not_there_is_none() -> None:
    graph = digraph(structure("n1", "n1>n2 n2>n1"))
    assert set(graph) == {"n1"}
    assert not graph.edges


def test_the_sources_example_has_its_layers() -> None:
    found = analysed(SOURCES_EXAMPLE).structure
    assert layers(found) == (("n1",), ("d1",), ("n2", "n3"), ("n4",))


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (StaticStructure(), ()),
        (BRANCHES, (("n1",), ("d1",), ("n2", "n3"), ("n4",))),
        (LOOP, (("n1",), ("l1",), ("n2", "n4"), ("n3",))),
        (LOOP_FIRST, (("l1",), ("n1", "n3"), ("l2",), ("n2",))),
        (structure("n1 n2", "n2>n1"), (("n2",), ("n1",))),
        (structure("n1 l1 n2", "l1>n2* n2>l1 l1>n1"), (("l1",), ("n1", "n2"))),
        (structure("n1 n2 n3", "n1>n3 n2>n2"), (("n1", "n2"), ("n3",))),
        (structure("n1 n2", "n1>n2 n2>n1"), (("n1",), ("n2",))),
    ],
    ids=[
        "nothing",
        "branches",
        "a loop",
        "a loop in a loop, first",
        "written after what it needs",
        "a loop is no loop's successor's successor",
        "not reached, and a step of itself",
        "a circle without a loop",
    ],
)
def test_layers_leave_out_the_ways_back(
    drawn: StaticStructure, expected: Sequence[Sequence[str]]
) -> None:
    assert layers(drawn) == expected


def test_layers_of_data_ignore_the_order_of_the_program() -> None:
    drawn = structure("n1 n2 n3", "n1>n2 n2>n3 n1~n3")
    assert layers(drawn, ["provides"]) == (("n1", "n2"), ("n3",))


def test_what_may_follow_a_node_is_itself_too_where_a_loop_leads_back() -> None:
    assert reachable(LOOP, "n3") == {"l1", "n2", "n3", "n4"}
    assert reachable(LOOP, "n4") == frozenset()
    assert reachable(BRANCHES, "n2") == {"n4"}
    assert reachable(structure("n1 n2", "n1~n2"), "n1", ["provides"]) == {"n2"}
    with pytest.raises(KeyError, match="n9"):
        reachable(LOOP, "n9")


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (BRANCHES, {"n1": None, "d1": "n1", "n2": "d1", "n3": "d1", "n4": "d1"}),
        (LOOP, {"n1": None, "l1": "n1", "n2": "l1", "n3": "n2", "n4": "l1"}),
        (LOOP_FIRST, {"l1": None, "n1": "l1", "l2": "n1", "n2": "l2", "n3": "l1"}),
        (structure("n1 n2"), {"n1": None, "n2": None}),
    ],
    ids=["branches", "a loop", "a loop in a loop, first", "apart"],
)
def test_what_every_way_passes(drawn: StaticStructure, expected: dict[str, str | None]) -> None:
    assert dominators(drawn) == expected


def test_an_id_may_be_any_word() -> None:
    drawn = structure("start start_ n1", "start>start_ start_>n1")
    assert dominators(drawn) == {"start": None, "start_": "start", "n1": "start_"}


IDS = [f"{letter}{number}" for letter in "nl" for number in range(1, 5)]


@given(st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=30))
def test_any_graph_has_layers_that_hold_each_node_once(ways: list[tuple[str, str]]) -> None:
    drawn = structure(" ".join(IDS), " ".join(f"{start}>{end}" for start, end in ways))
    found = [node_id for layer in layers(drawn) for node_id in layer]
    assert sorted(found) == sorted(IDS)
    graph = digraph(drawn, FLOW)
    if nx.is_directed_acyclic_graph(graph):
        depth = {one: number for number, layer in enumerate(layers(drawn)) for one in layer}
        assert all(depth[start] < depth[end] for start, end in graph.edges)
