"""Edges pass: the flow, drawn as sequence and conditional edges.

Every way through the program that ends is a way through these edges; rounds of a loop after the
first add none.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from pml_analyzer.domain.flow import (
    Attempt,
    Branch,
    Choice,
    Flow,
    Jump,
    JumpKind,
    Labelled,
    Perhaps,
    Repeat,
    Routine,
    Sequence,
    Step,
    nodes_in,
)
from pml_common.contracts.structure import Edge


class TooManyEdges(Exception):
    """The structure would have more edges than a reader or a message should get."""


@dataclass(frozen=True, slots=True)
class Exit:
    """An edge that still looks for its end."""

    node_id: str
    type: Literal["sequence", "conditional"] = "sequence"
    outcome: str | None = None


Frontier = dict[Exit, None]
"""Everything after which the next node may come, in order and once each; empty: nothing before."""

Target = tuple[JumpKind, str | None]


@dataclass
class _Ways:
    """How a part is left: by its end, unless that is never reached, or by jumps."""

    end: Frontier | None
    jumps: dict[Target, Frontier] = field(default_factory=dict[Target, Frontier])

    def land(self, *targets: Target) -> Frontier | None:
        """Where the jumps to these targets join the end; they are jumps no more."""
        landed = [self.jumps.pop(target) for target in targets if target in self.jumps]
        return _merged(landed if self.end is None else [self.end, *landed])


def edges_of(flow: Flow, *, limit: int) -> list[Edge]:
    """Edges in program order, each once. Raises TooManyEdges beyond `limit`."""
    drawing = _Drawing(limit)
    drawing.draw(flow, {})
    return [
        Edge.model_validate(
            {"from": exit_.node_id, "to": to, "type": exit_.type, "outcome": exit_.outcome}
        )
        for exit_, to in drawing.edges
    ]


class _Drawing:
    def __init__(self, limit: int) -> None:
        self.edges: dict[tuple[Exit, str], None] = {}
        self._limit = limit

    def draw(self, flow: Flow, entry: Frontier) -> _Ways:
        """Draw a flow that is entered from a frontier; tells how it is left."""
        match flow:
            case Step():
                return _Ways(self._reach(flow.node_id, entry))
            case Sequence():
                return self._sequence(flow, entry)
            case Branch():
                return self._branch(flow, entry)
            case Perhaps():
                ways = self.draw(flow.part, entry)
                return _Ways(_merged([entry, ways.end]), ways.jumps)
            case Repeat():
                return self._repeat(flow, entry)
            case Choice():
                return self._choice(flow, entry)
            case Attempt():
                return self._attempt(flow, entry)
            case _:
                return self._other(flow, entry)

    def _other(self, flow: Routine | Labelled | Jump, entry: Frontier) -> _Ways:
        if isinstance(flow, Jump):
            return _Ways(None, {(flow.kind, flow.label): entry})
        ways = self.draw(flow.body, entry)
        if isinstance(flow, Routine):
            return _Ways(_merged([entry, ways.land(*ways.jumps)]))
        targets: list[Target] = [("break", flow.label), ("continue", flow.label)]
        return _Ways(ways.land(*targets), ways.jumps)

    def _reach(self, node_id: str, entry: Frontier) -> Frontier:
        for exit_ in entry:
            self.edges[exit_, node_id] = None
        if len(self.edges) > self._limit:
            raise TooManyEdges
        return {Exit(node_id): None}

    def _sequence(self, flow: Sequence, entry: Frontier) -> _Ways:
        jumps: dict[Target, Frontier] = {}
        end: Frontier | None = entry
        for part in flow.parts:
            if end is None:  # not reached: its nodes are shown, but nothing leads in or out
                self.draw(part, {})
                continue
            ways = self.draw(part, end)
            _add(jumps, ways.jumps)
            end = ways.end
        return _Ways(end, jumps)

    def _branch(self, flow: Branch, entry: Frontier) -> _Ways:
        condition = self.draw(flow.condition, entry)
        self._reach(flow.node_id, condition.end or {})
        chosen = self.draw(flow.if_true, {Exit(flow.node_id, "conditional", "true"): None})
        other = self.draw(flow.if_false, {Exit(flow.node_id, "conditional", "false"): None})
        _add(chosen.jumps, other.jumps)
        return _Ways(_merged([chosen.end, other.end]), chosen.jumps)

    def _repeat(self, flow: Repeat, entry: Frontier) -> _Ways:
        head = self.draw(flow.head, entry).end or {}
        body = self.draw(flow.body, head)
        round_ = self.draw(flow.tail, body.land(("continue", None)) or {}).end
        end = _merged([round_] if flow.at_least_once else [head, round_])
        leaving = _Ways(end, body.jumps)
        return _Ways(leaving.land(("break", None)), leaving.jumps)

    def _choice(self, flow: Choice, entry: Frontier) -> _Ways:
        subject = self.draw(flow.subject, entry).end or {}
        leaving = _Ways(None)
        for case in flow.cases:
            ways = self.draw(case, _merged([subject, leaving.end]) or {})
            leaving.end = ways.end
            _add(leaving.jumps, ways.jumps)
        if not flow.exhaustive:
            leaving.end = _merged([subject, leaving.end])
        return _Ways(leaving.land(("break", None)), leaving.jumps)

    def _attempt(self, flow: Attempt, entry: Frontier) -> _Ways:
        ways = self.draw(flow.body, entry)
        failing: list[Frontier | None] = [entry, _exits_in(flow.body)]
        if flow.handler is not None:
            failing.append(ways.jumps.pop(("throw", None), None))
            handled = self.draw(flow.handler, _merged(failing) or {})
            ways.end = _merged([ways.end, handled.end])
            _add(ways.jumps, handled.jumps)
            failing = []
        if flow.finalizer is None:
            return ways
        before = _merged([ways.end, *ways.jumps.values(), *failing]) or {}
        finalizer = self.draw(flow.finalizer, before)
        if finalizer.end == before:  # no node in it: every way goes on as it was
            _add(ways.jumps, finalizer.jumps)
            return ways
        after = finalizer.end or {}
        jumps = {**dict.fromkeys(ways.jumps, after), **finalizer.jumps}
        return _Ways(None if ways.end is None else finalizer.end, jumps)


def _merged(frontiers: Iterable[Frontier | None]) -> Frontier | None:
    """All exits of several frontiers; None when none of them is reached."""
    found = [frontier for frontier in frontiers if frontier is not None]
    return {exit_: None for frontier in found for exit_ in frontier} if found else None


def _add(jumps: dict[Target, Frontier], more: dict[Target, Frontier]) -> None:
    for target, frontier in more.items():
        jumps[target] = {**jumps.get(target, {}), **frontier}


def _exits_in(flow: Flow) -> Frontier:
    """Every place in a flow after which something may fail."""
    exits: Frontier = {}
    for part in nodes_in(flow):
        if isinstance(part, Step):
            exits[Exit(part.node_id)] = None
        else:
            exits[Exit(part.node_id, "conditional", "true")] = None
            exits[Exit(part.node_id, "conditional", "false")] = None
    return exits
