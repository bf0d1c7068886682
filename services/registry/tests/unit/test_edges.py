"""Edges of the tool graph."""

from pml_registry.domain.tool_catalog import merged_edges
from services.registry.tests.support.builders import edges


def test_edges_are_summed_by_their_ends_in_one_order() -> None:
    counted = merged_edges(edges(("b:y", "c:z"), ("a:x", "b:y"), ("b:y", "c:z")).edges)
    assert [(edge.from_tool, edge.to_tool, edge.count) for edge in counted] == [
        ("a:x", "b:y", 1),
        ("b:y", "c:z", 2),
    ]


def test_edges_to_the_same_or_to_an_invalid_tool_are_ignored() -> None:
    strange = edges(("a:x", "a:x"), ("a:x", "nothing"), ("x" * 300 + ":y", "a:x"))
    assert merged_edges(strange.edges) == []
