"""Edges of the tool graph."""

from pml_registry.domain.tool_catalog import shown_edges
from services.registry.tests.support.builders import ELSEWHERE, SCOPE, edges


def test_edges_of_a_message_are_summed_by_their_ends() -> None:
    observed = edges(("b:y", "c:z"), ("a:x", "b:y"), ("b:y", "c:z"), count=3)
    elsewhere = edges(("b:y", "c:z"), scope=ELSEWHERE)
    shown = [
        (each.message_id, each.scope, each.edge.from_tool, each.edge.to_tool, each.edge.count)
        for each in shown_edges([observed, elsewhere])
    ]
    assert shown == [
        (observed.event_id, SCOPE, "a:x", "b:y", 3),
        (observed.event_id, SCOPE, "b:y", "c:z", 6),
        (elsewhere.event_id, ELSEWHERE, "b:y", "c:z", 1),
    ]


def test_edges_to_the_same_or_to_an_invalid_tool_are_ignored() -> None:
    strange = edges(("a:x", "a:x"), ("a:x", "nothing"), ("x" * 300 + ":y", "a:x"))
    assert shown_edges([strange]) == []
