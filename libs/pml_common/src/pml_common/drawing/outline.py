"""A structure as an outline: what follows what, line by line, nested as the program is.

The way through a program is a graph; an outline says each node once. A node stands under the branch
that alone leads to it; where several ways meet, it stands after the last node that all of them
pass.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from pml_common.contracts.structure import (
    DecisionNode,
    ForkNode,
    JoinNode,
    LoopNode,
    Node,
    StaticStructure,
)
from pml_common.drawing.flow import START, Flow

_GUARDED: Final = ({"false"}, {"ok"})
"""Where these alone lead on, the other outcome left: `if (!x) return;`. What follows is not nested,
or a program of guards would be drawn as a staircase."""

_NOWHERE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node; `only_on` is the one outcome of this decision that anything below follows on; `ends`
    when nothing does, though rows below may look as if it did."""

    depth: int
    node: Node
    only_on: str | None = None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class WayRow:
    """A way out of the node above it: outcomes, or one of several strands; its rows are below."""

    depth: int
    label: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class BackRow:
    """The way leads back to a node that is no loop: what stands in a loop's head runs again."""

    depth: int
    node_id: str


Row = NodeRow | WayRow | BackRow


def outline(structure: StaticStructure) -> list[Row]:
    """Rows from top to bottom; what belongs to a row stands below it, deeper by one."""
    return _settled(list(_Outline(Flow(structure)).rows()))


class _Outline:
    """Walks with a stack of its own: a structure may nest deeper than calls may."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._leading = set(flow.nearest.values())
        """Nodes that lead where nothing else does."""

    def rows(self) -> Iterator[Row]:
        flow = self._flow
        first = [entry for entry in flow.onward[START] if flow.before[entry] == [START]]
        waiting = self._nodes(0, [*first, *flow.meetings[START]])[::-1]
        while waiting:
            row = waiting.pop()
            if isinstance(row, NodeRow):
                row, below = self._expanded(row)
                waiting.extend(reversed(below))
            yield row

    def _expanded(self, row: NodeRow) -> tuple[NodeRow, list[Row]]:
        """The row with what is known of it, and the rows below it."""
        flow = self._flow
        if not flow.ways[row.node.id]:
            return replace(row, ends=True), self._after(row, ())
        match row.node:
            case DecisionNode():
                return self._decision(row, row.node)
            case LoopNode():
                body = self._body(row.node.id)
                return row, [*self._nodes(row.depth + 1, body), *self._after(row, body)]
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
        rows: list[Row] = []
        nested: set[str] = set()
        for end, outcomes in by_end.items():
            if branch := self._branch(row, end, outcomes):
                rows += branch
                nested.add(end)
        rows += [WayRow(row.depth + 1, outcome, ends=True) for outcome in missing]
        return row, [*rows, *self._after(row, nested)]

    def _branch(self, row: NodeRow, end: str, outcomes: list[str]) -> list[Row]:
        """What stands under some outcomes; nothing where it stands after the decision."""
        flow, start = self._flow, row.node.id
        others = [before for before in flow.before[end] if before != start]
        if flow.leads_back(start, end):
            below, others = self._back(row.depth + 2, [end]), []
        elif others and (flow.nearest[end] != start or end == flow.meetings[start][-1]):
            return []
        else:
            # With others, but not the last place where ways meet, so some way goes past it: it is
            # no step that all take, but a case of a switch that another falls through to.
            below = self._nodes(row.depth + 2, [end])
        label = ", ".join([*outcomes, *(f"after {before}" for before in others)])
        return [WayRow(row.depth + 1, label), *below] if below else []

    def _strands(self, row: NodeRow, strands: list[str]) -> list[Row]:
        if len(strands) == 1 or not self._leading.intersection(strands):
            return self._nodes(row.depth + 1, strands)
        rows: list[Row] = []
        for number, strand in enumerate(strands, start=1):
            rows.append(WayRow(row.depth + 1, f"strand {number}"))
            rows += self._nodes(row.depth + 2, [strand])
        return rows

    def _after(self, row: NodeRow, nested: Container[str]) -> list[Row]:
        """What follows on the same level: what only this leads to, then where its ways meet."""
        flow, start = self._flow, row.node.id
        ends = dict.fromkeys(edge.to for edge in flow.ways[start])
        back = self._back(row.depth, [end for end in ends if flow.leads_back(start, end)])
        follows = [*self._led_to(start), *flow.meetings[start]]
        level = self._nodes(row.depth, [end for end in follows if end not in nested])
        return [*(again for again in back if again.node_id not in nested), *level]

    def _led_to(self, start: str) -> list[str]:
        """What no other node leads to."""
        flow = self._flow
        return [end for end in dict.fromkeys(flow.onward[start]) if flow.before[end] == [start]]

    def _body(self, loop: str) -> list[str]:
        flow = self._flow
        ends = dict.fromkeys(edge.to for edge in flow.ways[loop] if edge.type == "loop_body")
        return [end for end in ends if flow.nearest[end] == loop]

    def _nodes(self, depth: int, node_ids: Iterable[str]) -> list[Row]:
        return [NodeRow(depth, self._flow.nodes[node_id]) for node_id in node_ids]

    def _back(self, depth: int, node_ids: Iterable[str]) -> list[BackRow]:
        """The ways back that a reader cannot guess: those to no loop."""
        nodes = self._flow.nodes
        return [
            BackRow(depth, node_id)
            for node_id in node_ids
            if not isinstance(nodes[node_id], LoopNode)
        ]


def _possible(node: DecisionNode, present: Iterable[str]) -> set[str]:
    """Outcomes that there always are; one without an edge leaves the program or the function."""
    if node.condition == "try":
        return {"ok", "error"}
    is_if = all(outcome in ("true", "false") for outcome in present)
    return {"true", "false"} if is_if else {"default"}


def _settled(rows: list[Row]) -> list[Row]:
    """Ends are told only where the rows below look as if something followed."""
    found: list[Row] = []
    follows = _NOWHERE
    """The depth that a reader who leaves a branch must get back to, to read on."""
    for row in reversed(rows):
        if isinstance(row, NodeRow):
            found.append(replace(row, ends=row.ends and follows <= row.depth))
            follows = min(follows, row.depth)
        elif isinstance(row, WayRow):
            follows = follows if follows < row.depth else _NOWHERE
            if not row.ends or follows < row.depth:
                found.append(row)
        else:
            found.append(row)
    return found[::-1]
