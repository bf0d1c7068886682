"""The control flow of a structure: the order of its nodes, and their immediate dominators.

Written out, without a graph library: importing one takes longer than drawing does.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

from pml_common.contracts.structure import Edge, ForkNode, LoopNode, Node, StaticStructure

START: Final = ""
"""The virtual node before every entry; no node has this id."""

_FLOW: Final = ("sequence", "conditional", "loop_body")


class Flow:
    """Nodes by id, and the control-flow edges (`ways`) by their start.

    `onward` are their ends, plus an edge from each fork to its join, so that the join is not part
    of a strand; `before` the reverse, without back edges; `nearest` the immediate dominator of a
    node, or START; `meetings` the nodes with several predecessors, by immediate dominator, in
    order.
    """

    def __init__(self, structure: StaticStructure) -> None:
        self.nodes: Mapping[str, Node] = {node.id: node for node in structure.nodes if node.id}
        self.exits: dict[str, list[Edge]] = {node_id: [] for node_id in self.nodes}
        for edge in structure.edges:
            if edge.type in _FLOW and edge.from_ in self.nodes and edge.to in self.nodes:
                self.exits[edge.from_].append(edge)
        self.onward = self._onward()
        order = _reverse_postorder(self.onward)
        self.place = {node_id: place for place, node_id in enumerate(order)}
        self.before: dict[str, list[str]] = {node_id: [] for node_id in order}
        for start in order:
            for end in dict.fromkeys(self.onward[start]):
                if not self.leads_back(start, end):
                    self.before[end].append(start)
        self.dominator: dict[str, str] = {}
        self.merges: dict[str, list[str]] = {node_id: [] for node_id in order}
        for node_id in order[1:]:
            self.dominator[node_id] = reduce(self._common, self.before[node_id])
            if len(self.before[node_id]) > 1:
                self.merges[self.dominator[node_id]].append(node_id)

    def leads_back(self, start: str, end: str) -> bool:
        """Return whether an edge is a back edge, closing a round of a loop."""
        return self.place[end] <= self.place[start]

    def rounds(self, loop: str, outer: str) -> set[str]:
        """Return the nodes on cycles through a loop that do not pass the `outer` loop."""
        backward: dict[str, list[str]] = {node_id: [] for node_id in self.onward}
        for start, ends in self.onward.items():
            for end in ends:
                backward[end].append(start)
        return _reach(loop, self.onward, {outer}) & _reach(loop, backward, {outer})

    def _onward(self) -> dict[str, list[str]]:
        onward = {node_id: [edge.to for edge in ways] for node_id, ways in self.exits.items()}
        for node in self.nodes.values():
            join = f"j{node.id[1:]}"
            if isinstance(node, ForkNode) and join in self.nodes:
                onward[node.id].append(join)
        return onward | {START: list(_entries(self.nodes, onward))}

    def _common(self, one: str, other: str) -> str:
        """Return the nearest common dominator of two nodes, possibly one of them."""
        while one != other:
            if self.place[one] < self.place[other]:
                other = self.dominator[other]
            else:
                one = self.dominator[one]
        return one


def _entries(nodes: Mapping[str, Node], onward: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the nodes without predecessors, then unreached ones in source order, loops first and
    outer loops before inner ones."""
    led_to = {end for ends in onward.values() for end in ends}

    def rank(node_id: str) -> int:
        if node_id not in led_to:
            return 0
        return 1 if isinstance(nodes[node_id], LoopNode) else 2

    reached: set[str] = set()
    for entry in sorted(nodes, key=rank):
        if entry not in reached:
            yield entry
            reached |= _reach(entry, onward, reached)


def _reach(start: str, ways: Mapping[str, Sequence[str]], without: Container[str]) -> set[str]:
    """Return a node and all nodes reachable from it without passing those in `without`."""
    found = {start}
    waiting = [start]
    while waiting:
        fresh = [end for end in ways[waiting.pop()] if end not in found and end not in without]
        found.update(fresh)
        waiting.extend(fresh)
    return found


def _reverse_postorder(onward: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the reverse postorder from START; the first of several exits precedes the others."""
    left: list[str] = []
    seen = {START}
    open_ = [(START, iter(reversed(onward[START])))]
    while open_:
        node_id, ends = open_[-1]
        fresh = next((end for end in ends if end not in seen), None)
        if fresh is None:
            left.append(node_id)
            open_.pop()
        else:
            seen.add(fresh)
            open_.append((fresh, iter(reversed(onward[fresh]))))
    return left[::-1]
