"""Edges pass: the flow as sequence, conditional and loop edges.

Every path through the program that ends is a path along these edges.
"""

from collections.abc import Mapping

from pml_analysis.structure.edge_set import EdgeSet
from pml_analysis.structure.expansion import Expansion, Instance
from pml_analysis.structure.flow import (
    NOTHING,
    Attempt,
    Branch,
    Enter,
    Flow,
    Jump,
    Labelled,
    Loop,
    Maybe,
    Parallel,
    Rescue,
    Routine,
    Sequence,
    Step,
    Switch,
)
from pml_analysis.structure.frontiers import (
    Exit,
    Exits,
    Frontier,
    Placeholders,
    Target,
    merged,
)
from pml_common.contracts.structure import Edge

_Part = Maybe | Rescue | Switch | Attempt | Routine | Labelled


def edges_of(flows: Mapping[int | None, Flow], expansion: Expansion, *, limit: int) -> list[Edge]:
    """Return the edges in program order, each once. Raises TooManyEdges beyond `limit`."""
    builder = _EdgeBuilder(flows, expansion, limit)
    builder.build(flows[None], {}, expansion.instances[0])
    return [
        Edge.model_validate(
            {"from": exit_.node_id, "to": to, "type": exit_.type, "outcome": exit_.outcome}
        )
        for exit_, to in builder.edges.real(builder.placeholders)
    ]


class _EdgeBuilder:
    def __init__(self, flows: Mapping[int | None, Flow], expansion: Expansion, limit: int) -> None:
        self._flows = flows
        self._expansion = expansion
        self.edges = EdgeSet(limit)
        self._made: list[Exit] = []
        """Every exit so far, in the order they were added: after any of them something may fail."""
        self.placeholders = Placeholders()
        self._returns: dict[int, Exit] = {}
        """The placeholder for a recursive instance's end, while it is being built."""
        self._failures: dict[int, Exit] = {}
        """The same for everything after which it may fail."""

    def build(self, flow: Flow, entry: Frontier, at: Instance) -> Exits:
        """Add the edges of a flow entered from a frontier; return its exits."""
        match flow:
            case Step():
                return Exits(self._pass(self._id(flow.at, at), entry))
            case Sequence():
                return self._sequence(flow, entry, at)
            case Branch():
                return self._branch(flow, entry, at)
            case Loop():
                return self._loop(flow, entry, at)
            case Parallel():
                return self._parallel(flow, entry, at)
            case Enter():
                return self._enter(flow, entry, at)
            case Jump():
                return Exits(None, {(flow.kind, flow.label): entry})
            case _:
                return self._part(flow, entry, at)

    def _part(self, flow: _Part, entry: Frontier, at: Instance) -> Exits:
        match flow:
            case Maybe():
                exits = self.build(flow.part, entry, at)
                return Exits(merged([entry, exits.end]), exits.jumps)
            case Rescue():
                return self._rescue(flow, entry, at)
            case Switch():
                return self._switch(flow, entry, at)
            case Attempt():
                return self._attempt(flow, entry, at)
            case Routine():
                return self.build(flow.body, entry, at).left(entry, certain=flow.certain)
            case _:
                exits = self.build(flow.body, entry, at)
                return Exits(exits.land(("break", flow.label)), exits.jumps)

    def _id(self, syntax: int, at: Instance) -> str:
        return self._expansion.ids[syntax, at.number]

    def _pass(self, node_id: str, entry: Frontier | None) -> Frontier:
        """Reach a node with a single exit."""
        self.edges.reach(node_id, entry)
        return self._leave(Exit(node_id))

    def _leave(self, exit_: Exit) -> Frontier:
        self._made.append(exit_)
        return {exit_: None}

    def _sequence(self, flow: Sequence, entry: Frontier, at: Instance) -> Exits:
        all_exits = Exits(entry)
        for part in flow.parts:
            if all_exits.end is None:  # its nodes are shown, but nothing leads in or out
                self.build(part, {}, at)
                continue
            exits = self.build(part, all_exits.end, at)
            all_exits.take(exits)
            all_exits.end = exits.end
        return all_exits

    def _branch(self, flow: Branch, entry: Frontier, at: Instance) -> Exits:
        condition = self.build(flow.condition, entry, at)
        node_id = self._id(flow.at, at)
        self.edges.reach(node_id, condition.end)
        chosen = self.build(flow.if_true, self._leave(Exit(node_id, "conditional", "true")), at)
        other = self.build(flow.if_false, self._leave(Exit(node_id, "conditional", "false")), at)
        exits = Exits(merged([chosen.end, other.end]), condition.jumps)
        exits.take(chosen, other)
        return exits

    def _loop(self, flow: Loop, entry: Frontier, at: Instance) -> Exits:
        again = self.placeholders.fresh()
        head = self.build(flow.head, {**entry, again: None}, at)
        node_id = self._id(flow.at, at)
        after = self._pass(node_id, head.end)
        exits = self.build(flow.body, self._leave(Exit(node_id, "loop_body")), at)
        continues: list[Target] = [("continue", label) for label in (None, *flow.labels)]
        round_ = self.build(flow.tail, exits.land(*continues) or {}, at)
        self.placeholders.resolve(again, round_.end)
        exits.take(head, round_)
        exits.end = None if flow.is_endless else after
        return Exits(exits.land(("break", None)), exits.jumps)

    def _switch(self, flow: Switch, entry: Frontier, at: Instance) -> Exits:
        subject = self.build(flow.subject, entry, at)
        node_id = self._id(flow.at, at)
        self.edges.reach(node_id, subject.end)
        leaving = Exits(None, subject.jumps)
        for outcome, body in flow.cases:
            chosen = self._leave(Exit(node_id, "conditional", outcome))
            exits = self.build(body, merged([leaving.end, chosen]) or {}, at)
            leaving.end = exits.end
            leaving.take(exits)
        if not flow.has_default:
            default = self._leave(Exit(node_id, "conditional", "default"))
            leaving.end = merged([leaving.end, default])
        return Exits(leaving.land(("break", None)), leaving.jumps)

    def _attempt(self, flow: Attempt, entry: Frontier, at: Instance) -> Exits:
        before = len(self._made)
        exits = self.build(flow.body, entry, at)
        failing: list[Frontier | None] = [entry, dict.fromkeys(self._made[before:])]
        if flow.handler is not None:
            failing.append(exits.jumps.pop(("throw", None), None))
            failing = [self._handle(flow, flow.handler, exits, merged(failing) or {}, at)]
        if flow.finalizer is None or flow.finalizer == NOTHING:
            return exits
        into = merged([exits.end, *exits.jumps.values(), *failing]) or {}
        finalizer = self.build(flow.finalizer, into, at)
        if finalizer.end == into:  # no node in it: every exit goes on as it was
            exits.take(finalizer)
            return exits
        after = finalizer.end or {}
        jumps = {**dict.fromkeys(exits.jumps, after), **finalizer.jumps}
        return Exits(None if exits.end is None else finalizer.end, jumps)

    def _handle(
        self, flow: Attempt, handler: Flow, exits: Exits, failing: Frontier, at: Instance
    ) -> Frontier:
        """Add the decision of a try and its handler; return the exits where the handler itself may
        fail."""
        before = len(self._made)
        if flow.at is not None:
            node_id = self._id(flow.at, at)
            self.edges.reach(node_id, merged([exits.end, failing]))
            if exits.end is not None:
                exits.end = self._leave(Exit(node_id, "conditional", "ok"))
            before = len(self._made)
            failing = self._leave(Exit(node_id, "conditional", "error"))
        handled = self.build(handler, failing, at)
        exits.end = merged([exits.end, handled.end])
        exits.take(handled)
        return {**failing, **dict.fromkeys(self._made[before:])}

    def _parallel(self, flow: Parallel, entry: Frontier, at: Instance) -> Exits:
        started = self._pass(self._id(flow.at, at), entry)
        exits = [self.build(part, started, at) for part in flow.parts]
        # A part without calls ends at once: the join waits for others, unless the first ends it.
        ends = [one.end for one in exits if one.end != started or flow.first_ends]
        if flow.settles:
            ends += [one.jumps.pop(("throw", None), None) for one in exits]
        ends += [started] if flow.is_repeated or not ends else []
        over = merged(ends)
        # A join that nothing reaches leads nowhere.
        end = over and self._pass(self._expansion.joins[flow.at, at.number], over)
        leaving = Exits(end)
        leaving.take(*exits)
        return leaving

    def _rescue(self, flow: Rescue, entry: Frontier, at: Instance) -> Exits:
        before = len(self._made)
        promise = self.build(flow.promise, entry, at)
        into = merged([promise.end, dict.fromkeys(self._made[before:])])
        callbacks = self.build(flow.callbacks, into or {}, at)
        end = callbacks.end if flow.goes_on or flow.callbacks != NOTHING else promise.end
        return Exits(end, {} if flow.goes_on else promise.jumps)

    def _enter(self, flow: Enter, entry: Frontier, at: Instance) -> Exits:
        callee = self._expansion.entered[flow.at, at.number]
        loop = self._expansion.loops.get(callee.number)
        if callee.number in self._returns and loop is not None:
            self.edges.reach(loop, entry)
            self._leave(self._failures[callee.number])
            return Exits({self._returns[callee.number]: None})
        inside, returns, before = entry, self.placeholders.fresh(), len(self._made)
        if loop is not None:
            self.edges.reach(loop, entry)
            inside = self._leave(Exit(loop, "loop_body"))
            self._returns[callee.number] = returns
            self._failures[callee.number] = self.placeholders.fresh()
        function = callee.unit.function.index if callee.unit is not None else None
        body = self._flows.get(function, NOTHING)
        exits = self.build(body, inside, callee).left(entry, certain=True)
        self.placeholders.resolve(returns, exits.end)
        if self._returns.pop(callee.number, None) is not None:
            failures = dict.fromkeys(self._made[before:])
            self.placeholders.resolve(self._failures.pop(callee.number), failures)
        return exits if flow.certain else Exits(merged([entry, exits.land(*exits.jumps)]))
