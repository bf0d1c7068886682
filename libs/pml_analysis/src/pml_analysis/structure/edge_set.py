"""The edges built so far."""

from pml_analysis.structure.frontiers import Exit, Frontier, Placeholders


class TooManyEdges(Exception):
    """The structure would have more edges than a reader or a message should get."""


class EdgeSet:
    """Edges in the order they are added, each once. Raises TooManyEdges beyond `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._edges: dict[tuple[Exit, str], None] = {}

    def reach(self, node_id: str, entry: Frontier | None) -> None:
        """Add an edge from every exit of a frontier to a node."""
        for exit_ in entry or ():
            self._edges[exit_, node_id] = None
        if len(self._edges) > self._limit:
            raise TooManyEdges

    def real(self, placeholders: Placeholders) -> list[tuple[Exit, str]]:
        """Return the edges, with placeholders replaced by the exits they stand for."""
        found: dict[tuple[Exit, str], None] = {}
        for exit_, to in self._edges:
            found |= dict.fromkeys((real, to) for real in placeholders.real(exit_))
            if len(found) > self._limit:
                raise TooManyEdges
        return list(found)
