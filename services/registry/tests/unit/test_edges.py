"""Edges that count."""

from pml_registry.domain.edges import countable
from services.registry.tests.samples import edges


def test_edges_are_summed_by_their_ends_in_one_order() -> None:
    counted = countable(edges(("b:y", "c:z"), ("a:x", "b:y"), ("b:y", "c:z")).edges)
    assert [(edge.from_tool, edge.to_tool, edge.count) for edge in counted] == [
        ("a:x", "b:y", 1),
        ("b:y", "c:z", 2),
    ]


def test_edges_of_a_tool_with_itself_or_with_what_is_no_tool_do_not_count() -> None:
    strange = edges(("a:x", "a:x"), ("a:x", "nothing"), ("x" * 300 + ":y", "a:x"))
    assert countable(strange.edges) == []
