"""Edges of the tool graph."""

from pml_registry.domain.tool_catalog import merged_edges
from services.registry.tests.support.builders import ELSEWHERE, SCOPE, edges


def test_edges_are_summed_by_their_ends_in_one_order() -> None:
    observed = (
        edges(("b:y", "c:z"), ("a:x", "b:y")),
        edges(("b:y", "c:z"), scope=ELSEWHERE),
        edges(("b:y", "c:z"), count=3),
    )
    counted = merged_edges(observed)
    assert [(scope, edge.from_tool, edge.to_tool, edge.count) for scope, edge in counted] == [
        (SCOPE, "a:x", "b:y", 1),
        (SCOPE, "b:y", "c:z", 4),
        (ELSEWHERE, "b:y", "c:z", 1),
    ]


def test_edges_to_the_same_or_to_an_invalid_tool_are_ignored() -> None:
    strange = edges(("a:x", "a:x"), ("a:x", "nothing"), ("x" * 300 + ":y", "a:x"))
    assert merged_edges([strange]) == []
