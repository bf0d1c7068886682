"""A structure as the net that a run moves through."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final

from pml_common.contracts.structure import (
    DecisionNode,
    ForkNode,
    JoinNode,
    LoopNode,
    StaticStructure,
)

Place = tuple[str, str]
"""A vertex, and the exit from it: the outcome of a decision, the edge out of a fork, else ''.

Vertices are node ids; a loop `l1` has two: `l1` for the test before a round, and `l1+` for the
beginning of one.
"""

START: Final[Place] = ("", "")
_FLOW: Final = ("sequence", "conditional", "loop_body")
_RECURSION: Final = "recursion"
_STATEMENTS: Final = frozenset(
    {"for", "for-of", "for-in", "for-await", "while", "do-while", _RECURSION}
)


class Net:
    """The successors of each place, and the parts of each fork and loop."""

    def __init__(self, structure: StaticStructure) -> None:
        self._nodes = {node.id: node for node in structure.nodes}
        self._ways: dict[Place, dict[str, None]] = defaultdict(dict)
        self._after: dict[str, set[str]] = defaultdict(set)
        for edge in structure.edges:
            if edge.type in _FLOW:
                begin = f"{edge.from_}+" if edge.type == "loop_body" else edge.from_
                self._add((begin, edge.outcome or ""), edge.to)
        for node in structure.nodes:
            if isinstance(node, LoopNode):
                self._add((node.id, ""), f"{node.id}+")
        for entry in self._entries():
            self._add(START, entry)
        self._reached = self._from(START[0])
        self._silent: dict[Place, set[str]] = {}
        self._regions: dict[str, Collection[str]] = {}

    def _add(self, place: Place, to: str) -> None:
        self._ways[place][to] = None
        self._after[place[0]].add(to)

    def next(self, place: Place) -> Iterable[str]:
        """Return the vertices that follow a place."""
        vertex, outcome = place
        if outcome and self.is_fork(vertex):
            return (outcome,)
        found = self._ways.get(place, {})
        return {**found, **self._ways.get((vertex, ""), {})} if outcome else found

    def leads(self, place: Place, vertex: str) -> bool:
        """Whether a vertex may come after a place without a report in between."""
        known = self._silent.get(place)
        if known is None:
            known = self._silent[place] = set[str]()
            waiting = [place]
            while waiting:
                for after in self.next(waiting.pop()):
                    if after not in known:
                        known.add(after)
                        if self.is_fork(after) or self.is_join(after) or self.is_loop(after):
                            waiting.append((after, ""))
        return vertex in known

    def reported(self, node_id: str) -> str:
        """Return the vertex at which a node is reported; None for a fork or join."""
        silent = self.is_fork(node_id) or self.is_join(node_id)
        return f"{node_id}+" if self.is_loop(node_id) or silent else node_id

    def is_fork(self, vertex: str) -> bool:
        """Whether several strands begin here."""
        return isinstance(self._nodes.get(vertex), ForkNode)

    def is_join(self, vertex: str) -> bool:
        """Whether strands meet here."""
        return isinstance(self._nodes.get(vertex), JoinNode)

    def is_loop(self, vertex: str) -> bool:
        """Whether it is the test before a round."""
        return isinstance(self._nodes.get(vertex), LoopNode)

    def may_overlap(self, vertex: str) -> bool:
        """Whether a round begins here that the next may not wait for."""
        loop = self._nodes.get(vertex.removesuffix("+"))
        return isinstance(loop, LoopNode) and loop.kind not in _STATEMENTS

    def join_of(self, vertex: str) -> str:
        """Return the join of a fork; None for a round."""
        return vertex.replace("f", "j") if self.is_fork(vertex) else ""

    def kind(self, fork: str) -> str:
        """Return what a fork waits for."""
        node = self._nodes[fork]
        return node.kind if isinstance(node, ForkNode) else ""

    def is_repeated(self, fork: str, start: str) -> bool:
        """Whether more than one strand may begin along this edge."""
        node = self._nodes[fork]
        over_items = isinstance(node, ForkNode) and node.over is not None
        return over_items or start in self._recursions_round(fork)

    def missing(self, fork: str, used: Collection[str]) -> list[str]:
        """Return edges out of a fork along which a strand must still begin before `all` are there;
        one strand may have several, such as those to the first call of a try and to its
        decision."""
        starts = list(self.next((fork, "")))
        if self.join_of(fork) in starts:
            return []
        inside = self.region(fork)
        further = {start: self._from(start, inside=inside) - {start} for start in starts}
        return [
            start
            for start in starts
            if start in inside
            and start not in used
            and not self.is_repeated(fork, start)
            and not any(start in found for found in further.values())
            and not any(begun in further[start] for begun in used)
        ]

    def region(self, vertex: str) -> Collection[str]:
        """Return the vertices between a fork and its join, or in the round of a loop."""
        known = self._regions.get(vertex)
        if known is None:
            found = self._only_after(vertex)
            if self.is_fork(vertex):
                found -= self._only_after(self.join_of(vertex))
            for loop in self._recursions_round(vertex):
                found |= self._only_after(loop)
            known = self._regions[vertex] = found
        return known

    def _recursions_round(self, fork: str) -> list[str]:
        """Return loops by which a function enters itself that contain a fork and follow it."""
        inside = self._from(fork, without=self.join_of(fork))
        return [
            node.id
            for node in self._nodes.values()
            if isinstance(node, LoopNode)
            and node.kind == _RECURSION
            and node.id in inside
            and fork in self._only_after(node.id)
        ]

    def _only_after(self, vertex: str) -> set[str]:
        """Return the vertices that no run reaches without passing this one, itself among them."""
        return self._reached - self._from(START[0], without=vertex)

    def _from(
        self, start: str, *, without: str | None = None, inside: Collection[str] | None = None
    ) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            vertex = waiting.pop()
            if vertex not in found and vertex != without:
                found.add(vertex)
                waiting += [v for v in self._after[vertex] if inside is None or v in inside]
        return found

    def _entries(self) -> list[str]:
        """Return the vertices where a run may begin: the first without predecessors (others are
        never reached), or the first loop; or the decision of an enclosing try, when that fails at
        once."""
        led_to = {to for tos in self._after.values() for to in tos}
        first = [
            *(vertex for vertex in self._nodes if vertex not in led_to),
            *(vertex for vertex in self._nodes if self.is_loop(vertex)),
        ][:1]
        return [*first, *(to for one in first for to in self._after[one] if self._is_try(to))]

    def _is_try(self, vertex: str) -> bool:
        node = self._nodes.get(vertex)
        return isinstance(node, DecisionNode) and node.condition == "try"
