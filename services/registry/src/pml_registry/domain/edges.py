"""Edges of the tool graph, as runs show them (C7, C9)."""

from collections import Counter
from collections.abc import Sequence

from pml_common.contracts.learner import ObservedEdge
from pml_registry.domain.catalogue import is_tool_id

OBSERVED_FROM = 3
"""Observations from which an edge counts as observed; before, as inferred."""


def countable(edges: Sequence[ObservedEdge]) -> Sequence[ObservedEdge]:
    """Edges between two different tools, summed, in one order for everybody who locks them."""
    counts = Counter[tuple[str, str]]()
    for edge in edges:
        ends = (edge.from_tool, edge.to_tool)
        if edge.from_tool != edge.to_tool and all(map(is_tool_id, ends)):
            counts[ends] += edge.count
    return [
        ObservedEdge(from_tool=from_tool, to_tool=to_tool, count=count)
        for (from_tool, to_tool), count in sorted(counts.items())
    ]
