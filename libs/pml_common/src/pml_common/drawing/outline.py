"""A structure as an outline: one line per node in order, nested like the program.

Control flow is a graph; an outline shows each node once. A node with a single predecessor is shown
under that branch; one where several paths meet is shown after its immediate dominator.
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
from pml_common.drawing.rows import BranchRow, JumpRow, NodeRow, Row, prune_ends
from pml_common.drawing.text import is_try

_GUARDED: Final = ({"false"}, {"ok"})
"""Outcomes that continue after a guard: `if (!x) return;`. The nodes after it are not nested, or a
program of guards would be drawn as a staircase."""


@dataclass(frozen=True, slots=True)
class _Left:
    """A marker on the stack: the end of a loop's body."""

    depth: int
    loop: str


def outline(structure: StaticStructure) -> list[Row]:
    """Return the rows from top to bottom; the children of a row follow it, one level deeper."""
    return prune_ends(list(_Outline(Flow(structure)).rows()))


class _Outline:
    """Builds rows with an explicit stack: a structure may nest deeper than Python's recursion."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._leading = set(flow.dominator.values())
        """Nodes that are the immediate dominator of others."""
        self._loop: dict[str, str] = {}
        """The loop that contains a node's row."""
        self._rounds: dict[str, Container[str] | None] = {}
        """The nodes of a loop's rounds, for loops without an exit of their own."""
        self._left: dict[str, dict[str, None]] = {}
        """The nodes shown after such a loop, in order."""

    def rows(self) -> Iterator[Row]:
        flow = self._flow
        first = [entry for entry in flow.onward[START] if flow.before[entry] == [START]]
        waiting: list[Row | _Left] = []
        waiting += reversed(self._nodes(0, [*first, *flow.merges[START]]))
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
        """Return the completed row, and the rows below it."""
        flow = self._flow
        if not flow.exits[row.node.id]:
            return replace(row, ends=True), self._after(row, ())
        match row.node:
            case DecisionNode():
                return self._decision(row, row.node)
            case LoopNode():
                loop = row.node.id
                body = self._body(loop)
                again = [edge.to for edge in flow.exits[loop] if edge.type == "loop_body"]
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
        for edge in self._flow.exits[node.id]:
            by_end.setdefault(edge.to, []).append(edge.outcome or edge.type)
        present = {outcome for outcomes in by_end.values() for outcome in outcomes}
        missing = sorted(_possible(node, present) - present)
        if len(by_end) == 1 and (not missing or present in _GUARDED):
            only_on = "".join(present) if missing else None
            return replace(row, only_on=only_on), self._after(row, ())
        branches = (self._branch(row, end, outcomes) for end, outcomes in by_end.items())
        rows = list(chain.from_iterable(branches))
        rows += [BranchRow(row.depth + 1, outcome, ends=True) for outcome in missing]
        nested = {below.node.id for below in rows if isinstance(below, NodeRow)}
        follows = [end for end in self._following(node.id) if end not in nested]
        return row, [*rows, *self._nodes(row.depth, follows, self._loop[node.id])]

    def _branch(self, row: NodeRow, end: str, outcomes: list[str]) -> list[Row]:
        """Return the rows of some outcomes; none if their target is what follows the decision."""
        flow, start, depth = self._flow, row.node.id, row.depth + 2
        others = [before for before in flow.before[end] if before != start]
        below: list[Row] = [*self._going(depth, start, end)]
        if not below and not flow.leads_back(start, end):
            is_last = flow.merges[start][-1:] == [end]
            if others and is_last and outcomes[0].startswith("case:"):
                return [BranchRow(row.depth + 1, ", ".join(outcomes)), JumpRow(depth, end)]
            # One of several nodes where paths meet, but not the last, so some path bypasses it: a
            # case of a switch that another case falls through to.
            if not others or (flow.dominator[end] == start and not is_last):
                outcomes = [*outcomes, *(f"after {before}" for before in others)]
                below += self._nodes(depth, [end], self._loop[start])
        return [BranchRow(row.depth + 1, ", ".join(outcomes)), *below] if below else []

    def _strands(self, row: NodeRow, strands: list[str]) -> list[Row]:
        loop = self._loop[row.node.id]
        if len(strands) == 1 or not self._leading.intersection(strands):
            return self._nodes(row.depth + 1, strands, loop)
        rows: list[Row] = []
        for number, strand in enumerate(strands, start=1):
            rows.append(BranchRow(row.depth + 1, f"strand {number}"))
            rows += self._nodes(row.depth + 2, [strand], loop)
        return rows

    def _after(self, row: NodeRow, nested: Container[str]) -> list[Row]:
        """Return the rows that follow on the same level."""
        start, depth = row.node.id, row.depth
        ends = dict.fromkeys(edge.to for edge in self._flow.exits[start])
        going = [self._going(depth, start, end) for end in ends if end not in nested]
        follows = [end for end in self._following(start) if end not in nested]
        return [*chain.from_iterable(going), *self._nodes(depth, follows, self._loop[start])]

    def _following(self, start: str) -> list[str]:
        """Return the nodes that only `start` leads to, then those where its paths meet."""
        return [*self._led_to(start), *self._flow.merges[start]]

    def _going(self, depth: int, start: str, end: str) -> list[JumpRow]:
        """Return a jump to a node, if the layout does not show it."""
        flow, loop = self._flow, self._loop[start]
        if flow.leads_back(start, end):
            return self._back(depth, start, end)
        if loop == START or is_try(flow.nodes[end]):
            return []
        leaves = flow.place[flow.dominator[end]] <= flow.place[loop] and end not in self._body(loop)
        return [JumpRow(depth, end)] if leaves or self._leaves_endless(loop, end) else []

    def _back(self, depth: int, start: str, end: str) -> list[JumpRow]:
        """Return a jump back that is more than the end of a round."""
        flow = self._flow
        if not flow.leads_back(start, end):
            return []
        node = flow.nodes[end]
        is_round = isinstance(node, LoopNode) and node.kind != "recursion"
        is_told = end not in (start, self._loop[start]) if is_round else True
        return [JumpRow(depth, end, back=True)] if is_told else []

    def _leaves_endless(self, loop: str, end: str) -> bool:
        """Return whether a node is outside a loop without an exit of its own (`while (true)`, or
        recursion): it is shown after the loop, though a node inside leads to it."""
        if loop not in self._rounds:
            ways = self._flow.exits.get(loop, [])
            is_endless = loop != START and all(edge.type == "loop_body" for edge in ways)
            rounds = self._flow.rounds(loop, self._loop[loop]) if is_endless else {loop}
            self._rounds[loop] = rounds if len(rounds) > 1 else None
        rounds = self._rounds[loop]
        return rounds is not None and end not in rounds

    def _led_to(self, start: str) -> list[str]:
        """Return the nodes whose only predecessor is `start`."""
        flow = self._flow
        return [end for end in dict.fromkeys(flow.onward[start]) if flow.before[end] == [start]]

    def _body(self, loop: str) -> list[str]:
        flow = self._flow
        ends = dict.fromkeys(edge.to for edge in flow.exits[loop] if edge.type == "loop_body")
        return [end for end in ends if flow.dominator[end] == loop]

    def _nodes(self, depth: int, node_ids: Iterable[str], loop: str = START) -> list[Row]:
        """Return rows in the body of a loop (START: none), deferring those after it."""
        rows: list[Row] = []
        for node_id in node_ids:
            if self._leaves_endless(loop, node_id):
                self._left.setdefault(loop, {})[node_id] = None
            else:
                self._loop[node_id] = loop
                rows.append(NodeRow(depth, self._flow.nodes[node_id]))
        return rows


def _possible(node: DecisionNode, present: Iterable[str]) -> set[str]:
    """Return the outcomes that always exist; one without an edge leaves the program or function."""
    if is_try(node):
        return {"ok", "error"}
    is_if = all(outcome in ("true", "false") for outcome in present)
    return {"true", "false"} if is_if else {"default"}
