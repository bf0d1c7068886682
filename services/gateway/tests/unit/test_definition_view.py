"""The definition of a capability as a graph."""

from collections.abc import Sequence
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.dependencies import Dependency, DependencyType
from pml_common.contracts.structure import Coverage, Edge
from pml_gateway.domain.capability_views.definition import definition_of
from pml_gateway.domain.capability_views.elements import DefinitionEdgeData, DefinitionView
from services.gateway.tests.support.builders import AT
from services.gateway.tests.support.drawn import NAME, NESTED, data, drawn, edge, node

ROOT = str(drawn().capability_id)


def _view(
    nodes: Sequence[tuple[str, str]], edges: Sequence[Edge] = (), limit: int = 99, most: int = 99
) -> DefinitionView:
    made = [node(*each, NESTED) for each in nodes]
    return definition_of(drawn(made, edges), (), limit, most)


def _edges(view: DefinitionView, type_: str) -> dict[tuple[str, str], DefinitionEdgeData]:
    return {
        (each.data.source, each.data.target): each.data
        for each in view.elements.edges
        if each.data.type == type_
    }


def test_ac2_each_tool_and_capability_is_one_node_with_all_its_call_sites() -> None:
    view = _view([("n1", "fs:read"), ("n2", "cap:fs:tidy"), ("n3", "fs:read"), ("d1", "")])
    found = [(n.data.id, n.data.kind, n.data.node_ids, n.classes) for n in view.elements.nodes]
    assert found == [
        (ROOT, "capability", (), "capability root"),
        ("fs:read", "tool", ("n1", "n3"), "tool"),
        (str(NESTED), "capability", ("n2",), "capability"),
    ]
    assert [n.data.label for n in view.elements.nodes] == [NAME, "fs:read", "fs:tidy"]
    assert set(_edges(view, "contains")) == {(ROOT, "fs:read"), (ROOT, str(NESTED))}
    assert (view.total_nodes, view.total_edges, view.complete) == (3, 2, True)


def test_a_capability_that_is_not_known_is_named() -> None:
    made = drawn([node("n1", "cap:fs:gone")])
    (_, one) = definition_of(made, (), 9, 9).elements.nodes
    assert (one.data.id, one.data.capability_id) == ("cap:fs:gone", None)


def test_a_capability_that_calls_itself_has_no_edge_to_itself() -> None:
    made = drawn([node("n1", f"cap:{NAME}", UUID(ROOT)), node("n2", "fs:read")], [edge("n1", "n2")])
    view = definition_of(made, (), 9, 9)
    assert [n.data.id for n in view.elements.nodes] == [ROOT, "fs:read"]
    assert {(e.data.source, e.data.target) for e in view.elements.edges} == {(ROOT, "fs:read")}


def test_dependencies_lead_to_the_calls_that_come_next_over_decisions() -> None:
    nodes = [("n1", "fs:stat"), ("d1", ""), ("n2", "fs:read"), ("n3", "fs:create")]
    steps = [
        edge("n1", "d1"),
        edge("d1", "n2", "true"),
        edge("d1", "n3", "false"),
        edge("n2", "n3"),
    ]
    found = _edges(_view(nodes, steps), "dependency")
    assert {ends: each.conditional for ends, each in found.items()} == {
        ("fs:stat", "fs:read"): True,
        ("fs:stat", "fs:create"): True,
        ("fs:read", "fs:create"): False,
    }
    view = _view(nodes, steps)
    assert {e.classes for e in view.elements.edges} == {
        "contains",
        "dependency",
        "dependency conditional",
    }


def test_what_follows_in_any_case_is_not_conditional() -> None:
    nodes = [("n1", "fs:stat"), ("d1", ""), ("d2", ""), ("n2", "fs:read")]
    steps = [edge("n1", "d1"), edge("d1", "n2", "true"), edge("d1", "d2"), edge("d2", "n2")]
    ((_, found),) = _edges(_view(nodes, steps), "dependency").items()
    assert not found.conditional


def test_branches_without_calls_that_join_lead_to_what_follows_them() -> None:
    nodes = [("n1", "fs:stat"), ("d1", ""), ("d2", ""), ("d3", ""), ("d4", ""), ("n2", "fs:read")]
    steps = [
        edge("n1", "d1"),
        edge("d1", "d2", "true"),
        edge("d1", "d3", "false"),
        edge("d2", "d4"),
        edge("d3", "d4"),
        edge("d4", "n2"),
    ]
    assert set(_edges(_view(nodes, steps), "dependency")) == {("fs:stat", "fs:read")}


def test_the_way_back_of_a_loop_is_no_dependency() -> None:
    nodes = [("l1", ""), ("n1", "fs:read"), ("n2", "fs:write")]
    steps = [
        Edge(from_="l1", to="n1", type="loop_body"),
        edge("n1", "n2"),
        edge("n2", "l1"),
        edge("n2", "gone"),
    ]
    assert set(_edges(_view(nodes, steps), "dependency")) == {("fs:read", "fs:write")}


def test_of_several_flows_of_data_the_best_covered_is_shown() -> None:
    nodes = [("n1", "fs:read"), ("n2", "json:parse"), ("n3", "fs:read"), ("d1", "")]
    flows: list[Edge] = []
    coverages: list[Coverage | None] = [None, "partial", "strict", "optional"]
    for coverage in coverages:
        flows += [data("n1", "n2", coverage), data("n3", "n1", coverage), data("d1", "n1", None)]
    found = _edges(_view(nodes, flows), "provides")
    assert {ends: each.coverage for ends, each in found.items()} == {
        ("fs:read", "json:parse"): "strict"
    }


def _dependency(type_: DependencyType, to: UUID) -> Dependency:
    return Dependency(
        from_capability_id=UUID(ROOT),
        from_name=NAME,
        to_capability_id=to,
        to_name=f"ci:c{to.int}",
        edge_type=type_,
        edge_source="observed",
        observed_count=4,
        confidence_score=0.8,
        created_at=AT,
        last_observed=AT,
    )


def test_what_the_registry_knows_is_added() -> None:
    made = drawn([node("n1", "cap:fs:tidy", NESTED)])
    known = [
        _dependency("contains", NESTED),
        _dependency("dependency", UUID(int=5)),
        _dependency("sequence", UUID(int=6)),
        _dependency("contains", UUID(ROOT)),
    ]
    view = definition_of(made, known, 9, 9, complete=False)
    assert [n.data.label for n in view.elements.nodes] == [NAME, "fs:tidy", "ci:c5"]
    (contained,) = _edges(view, "contains").values()
    assert (contained.edge_source, contained.observed_count) == ("observed", 4)
    assert set(_edges(view, "dependency")) == {(ROOT, str(UUID(int=5)))}
    assert not view.complete


def test_a_view_is_cut_at_its_limits_and_says_so() -> None:
    nodes = [(f"n{at}", f"fs:t{at}") for at in range(1, 6)]
    steps = [edge(f"n{at}", f"n{at + 1}") for at in range(1, 5)]
    for limit, most, complete in ((6, 9, True), (5, 9, False), (6, 8, False), (1, 0, False)):
        view = _view(nodes, steps, limit, most)
        assert (len(view.elements.nodes), view.complete) == (limit, complete)
        assert len(view.elements.edges) <= most
        assert (view.total_nodes, view.total_edges) == (6, 9)
        ids = {each.data.id for each in view.elements.nodes}
        assert all({e.data.source, e.data.target} <= ids for e in view.elements.edges)


@given(
    st.lists(st.sampled_from(["fs:a", "fs:b", "cap:fs:c"]), max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.booleans()), max_size=20),
)
def test_every_call_site_stands_in_one_node_and_edges_join_nodes(
    calls: list[str], steps: list[tuple[int, int, bool]]
) -> None:
    nodes = [(f"n{at}", called) for at, called in enumerate(calls)]
    edges = [edge(f"n{one}", f"n{two}", "true" if maybe else None) for one, two, maybe in steps]
    view = _view(nodes, edges)
    sites = [site for each in view.elements.nodes for site in each.data.node_ids]
    assert sorted(sites) == [name for name, _ in sorted(nodes)]
    ids = [each.data.id for each in view.elements.nodes]
    assert len(ids) == len(set(ids)) == len(set(calls)) + 1
    for each in view.elements.edges:
        assert {each.data.source, each.data.target} <= set(ids)
        assert each.data.source != each.data.target
    keys = [each.data.id for each in view.elements.edges]
    assert len(keys) == len(set(keys))
