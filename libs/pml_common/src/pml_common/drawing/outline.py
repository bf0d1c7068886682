"""A structure as an outline: what follows what, line by line, nested as the program is.

The way through a program is a graph; an outline says each node once. A node stands under the branch
that alone leads to it; where several ways meet, it stands after the last node that all of them
pass.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from pml_common.contracts.structure import (
    DecisionNode,
    ForkNode,
    JoinNode,
    LoopNode,
    StaticStructure,
)
from pml_common.drawing.flow import START, Flow
from pml_common.drawing.rows import GoRow, NodeRow, Row, WayRow, settled
from pml_common.drawing.text import is_try

_GUARDED: Final = ({"false"}, {"ok"})
"""Where these alone lead on, the other outcome left: `if (!x) return;`. What follows is not nested,
or a program of guards would be drawn as a staircase."""


@dataclass(frozen=True, slots=True)
class _Left:
    """A place on the stack: here the body of a loop ends."""

    depth: int
    loop: str


def outline(structure: StaticStructure) -> list[Row]:
    """Rows from top to bottom; what belongs to a row stands below it, deeper by one."""
    return settled(list(_Outline(Flow(structure)).rows()))


class _Outline:
    """Walks with a stack of its own: a structure may nest deeper than calls may."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._leading = set(flow.nearest.values())
        """Nodes that lead where nothing else does."""
        self._loop: dict[str, str] = {}
        """The loop that a node's row stands in."""
        self._rounds: dict[str, Container[str] | None] = {}
        """What belongs to a loop's rounds, for loops without a way on of their own."""
        self._left: dict[str, dict[str, None]] = {}
        """What stands after such a loop, in order."""

    def rows(self) -> Iterator[Row]:
        flow = self._flow
        first = [entry for entry in flow.onward[START] if flow.before[entry] == [START]]
        waiting: list[Row | _Left] = []
        waiting += reversed(self._nodes(0, [*first, *flow.meetings[START]]))
        while waiting:
            row = waiting.pop()
            if isinstance(row, _Left):
                after = self._left.pop(row.loop, {})
                waiting.extend(reversed(self._nodes(row.depth, after, self._loop[row.loop])))
                continue
            if isinstance(row, NodeRow):
                row, below = self._expanded(row)
                waiting.extend(reversed(below))
            yield row

    def _expanded(self, row: NodeRow) -> tuple[NodeRow, Sequence[Row | _Left]]:
        """The row with what is known of it, and the rows below it."""
        flow = self._flow
        if not flow.ways[row.node.id]:
            return replace(row, ends=True), self._after(row, ())
        match row.node:
            case DecisionNode():
                return self._decision(row, row.node)
            case LoopNode():
                loop = row.node.id
                body = self._body(loop)
                again = [edge.to for edge in flow.ways[loop] if edge.type == "loop_body"]
                nested = [
                    *self._nodes(row.depth + 1, body, loop),
                    *(to for end in again for to in self._back(row.depth + 1, loop, end)),
                    _Left(row.depth, loop),
                ]
                return row, [*nested, *self._after(row, [*body, *again])]
            case ForkNode():
                led_to = self._led_to(row.node.id)
                strands = [end for end in led_to if not isinstance(flow.nodes[end], JoinNode)]
                return row, [*self._strands(row, strands), *self._after(row, strands)]
            case _:
                return row, self._after(row, ())

    def _decision(self, row: NodeRow, node: DecisionNode) -> tuple[NodeRow, list[Row]]:
        by_end: dict[str, list[str]] = {}
        for edge in self._flow.ways[node.id]:
            by_end.setdefault(edge.to, []).append(edge.outcome or edge.type)
        present = {outcome for outcomes in by_end.values() for outcome in outcomes}
        missing = sorted(_possible(node, present) - present)
        if len(by_end) == 1 and (not missing or present in _GUARDED):
            only_on = "".join(present) if missing else None
            return replace(row, only_on=only_on), self._after(row, ())
        branches = (self._branch(row, end, outcomes) for end, outcomes in by_end.items())
        rows = list(chain.from_iterable(branches))
        rows += [WayRow(row.depth + 1, outcome, ends=True) for outcome in missing]
        nested = {below.node.id for below in rows if isinstance(below, NodeRow)}
        follows = [end for end in self._following(node.id) if end not in nested]
        return row, [*rows, *self._nodes(row.depth, follows, self._loop[node.id])]

    def _branch(self, row: NodeRow, end: str, outcomes: list[str]) -> list[Row]:
        """What stands under some outcomes; nothing where it is what follows the decision."""
        flow, start, depth = self._flow, row.node.id, row.depth + 2
        others = [before for before in flow.before[end] if before != start]
        below: list[Row] = [*self._going(depth, start, end)]
        if not below and not flow.leads_back(start, end):
            is_last = flow.meetings[start][-1:] == [end]
            if others and is_last and outcomes[0].startswith("case:"):
                return [WayRow(row.depth + 1, ", ".join(outcomes)), GoRow(depth, end)]
            # One of several places where ways meet, but not the last, so some way goes past it: it
            # is no step that all take, but a case of a switch that another falls through to.
            if not others or (flow.nearest[end] == start and not is_last):
                outcomes = [*outcomes, *(f"after {before}" for before in others)]
                below += self._nodes(depth, [end], self._loop[start])
        return [WayRow(row.depth + 1, ", ".join(outcomes)), *below] if below else []

    def _strands(self, row: NodeRow, strands: list[str]) -> list[Row]:
        loop = self._loop[row.node.id]
        if len(strands) == 1 or not self._leading.intersection(strands):
            return self._nodes(row.depth + 1, strands, loop)
        rows: list[Row] = []
        for number, strand in enumerate(strands, start=1):
            rows.append(WayRow(row.depth + 1, f"strand {number}"))
            rows += self._nodes(row.depth + 2, [strand], loop)
        return rows

    def _after(self, row: NodeRow, nested: Container[str]) -> list[Row]:
        """What is not nested, on the same level."""
        start, depth = row.node.id, row.depth
        ends = dict.fromkeys(edge.to for edge in self._flow.ways[start])
        going = [self._going(depth, start, end) for end in ends if end not in nested]
        follows = [end for end in self._following(start) if end not in nested]
        return [*chain.from_iterable(going), *self._nodes(depth, follows, self._loop[start])]

    def _following(self, start: str) -> list[str]:
        """What only this leads to, then where its ways meet."""
        return [*self._led_to(start), *self._flow.meetings[start]]

    def _going(self, depth: int, start: str, end: str) -> list[GoRow]:
        """The way to a node, where a reader cannot guess it."""
        flow, loop = self._flow, self._loop[start]
        if flow.leads_back(start, end):
            return self._back(depth, start, end)
        if loop == START or is_try(flow.nodes[end]):
            return []
        leaves = flow.place[flow.nearest[end]] <= flow.place[loop] and end not in self._body(loop)
        return [GoRow(depth, end)] if leaves or self._leaves_endless(loop, end) else []

    def _back(self, depth: int, start: str, end: str) -> list[GoRow]:
        """A way back that is not only the end of a round."""
        flow = self._flow
        if not flow.leads_back(start, end):
            return []
        node = flow.nodes[end]
        is_round = isinstance(node, LoopNode) and node.kind != "recursion"
        is_told = end not in (start, self._loop[start]) if is_round else True
        return [GoRow(depth, end, back=True)] if is_told else []

    def _leaves_endless(self, loop: str, end: str) -> bool:
        """Whether a node is outside a loop that has no way on of its own, `while (true)` or a
        function that calls itself: it stands after the loop then, though something in it leads
        there."""
        if loop not in self._rounds:
            ways = self._flow.ways.get(loop, [])
            is_endless = loop != START and all(edge.type == "loop_body" for edge in ways)
            rounds = self._flow.rounds(loop, self._loop[loop]) if is_endless else {loop}
            self._rounds[loop] = rounds if len(rounds) > 1 else None
        rounds = self._rounds[loop]
        return rounds is not None and end not in rounds

    def _led_to(self, start: str) -> list[str]:
        """What no other node leads to."""
        flow = self._flow
        return [end for end in dict.fromkeys(flow.onward[start]) if flow.before[end] == [start]]

    def _body(self, loop: str) -> list[str]:
        flow = self._flow
        ends = dict.fromkeys(edge.to for edge in flow.ways[loop] if edge.type == "loop_body")
        return [end for end in ends if flow.nearest[end] == loop]

    def _nodes(self, depth: int, node_ids: Iterable[str], loop: str = START) -> list[Row]:
        """Rows in the body of this loop (START: in none), or later, after it."""
        rows: list[Row] = []
        for node_id in node_ids:
            if self._leaves_endless(loop, node_id):
                self._left.setdefault(loop, {})[node_id] = None
            else:
                self._loop[node_id] = loop
                rows.append(NodeRow(depth, self._flow.nodes[node_id]))
        return rows


def _possible(node: DecisionNode, present: Iterable[str]) -> set[str]:
    """Outcomes that there always are; one without an edge leaves the program or the function."""
    if is_try(node):
        return {"ok", "error"}
    is_if = all(outcome in ("true", "false") for outcome in present)
    return {"true", "false"} if is_if else {"default"}
