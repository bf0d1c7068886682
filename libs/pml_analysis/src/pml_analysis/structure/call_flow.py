"""Control flow of calls: which functions run where they are written, and the order of promises."""

from collections.abc import Iterable, Sequence

from pml_analysis.names.callbacks import CHAINING, given_function, method_of
from pml_analysis.structure.flow import (
    NOTHING,
    Enter,
    Flow,
    Loop,
    Parallel,
    Rescue,
    Routine,
    Step,
    in_order,
    maybe,
)
from pml_analysis.structure.marks import Mark, Places, combinator, combined
from pml_analysis.syntax.node_kinds import CHAIN_LINKS, INLINE_FUNCTIONS
from pml_analysis.syntax.tree import Node, Tree


class CallFlow:
    """Flows of the nodes reduced so far, and of calls."""

    def __init__(self, tree: Tree, marks: Sequence[Mark]) -> None:
        self._tree = tree
        self._marks: dict[int, set[str]] = {}
        for mark in marks:
            self._marks.setdefault(mark.node.index, set()).add(mark.kind)
        self._marked = Places(mark.node.index for mark in marks)
        self._units = {mark.unit.function.index for mark in marks if mark.unit is not None}
        self._done: dict[int, tuple[Flow, int]] = {}
        self.bodies: dict[int, Flow] = {}
        """Flows of function bodies, by the functions' index."""
        self._calls: dict[int, tuple[Flow, Flow]] = {}
        """By index of a call: the flow before it, and itself, whose promise may be awaited."""

    def flow(self, node: Node | None) -> Flow:
        """Return the flow of a reduced node; of any other, nothing."""
        return (
            self._done[node.index][0] if node is not None and node.index in self._done else NOTHING
        )

    def _is(self, node: Node, kind: str) -> bool:
        return kind in self._marks.get(node.index, ())

    def _in(self, node: Node, place: str) -> Flow:
        return self.flow(node.child(place))

    def _in_order(self, nodes: Iterable[Node]) -> Flow:
        return in_order(*map(self.flow, nodes))

    def subscript(self, node: Node) -> Flow:
        """Return the flow of a subscript, whose index is skipped where an optional chain ends
        before it."""
        index = self._in(node, "index")
        return in_order(self._in(node, "object"), maybe(index) if self._ends(node) else index)

    def call(self, node: Node) -> Flow:
        """Return the flow of a call of any kind."""
        before, itself = self._calls[node.index] = self._called(node)
        return in_order(before, itself)

    def _called(self, node: Node) -> tuple[Flow, Flow]:
        if self._is(node, "parallel"):
            return self._parallel(node)
        if self._is(node, "loop"):
            return self._method_loop(node)
        callee, given = node["function"], self._in(node, "arguments")
        if callee.inner.kind in INLINE_FUNCTIONS:  # called where it is written
            return given, self._invoked_in_place(callee.inner)
        if self._ends(node):
            given = maybe(given)
        if method_of(self._tree, node) in CHAINING:
            return self._chain(node, given)
        before = in_order(self.flow(callee), given)
        if self._is(node, "call"):
            return before, Step(node.index)
        return before, Enter(node.index) if self._is(node, "entry") else NOTHING

    def _chain(self, node: Node, given: Flow) -> tuple[Flow, Flow]:
        """Return the flow of a chain: `p.then(f)` runs `f` after `p`; `p.then(f, g)`, `p.catch(g)`
        also where `p` fails."""
        promise = node["function"]["object"].inner
        before, itself = self._calls.get(promise.index, (self.flow(promise), NOTHING))
        name = method_of(self._tree, node)
        if name == "then" and len(node["arguments"].children) < 2:
            return before, in_order(itself, given)
        return before, Rescue(itself, given, goes_on=name != "finally")

    def _ends(self, node: Node) -> bool:
        """Whether the chain that a call or an index belongs to may end before it."""
        while node.kind in CHAIN_LINKS:
            if any(child.kind == "optional_chain" for child in node.children):
                return True
            node = node.children[0]
        return False

    def _parallel(self, node: Node) -> tuple[Flow, Flow]:
        given = combined(node)
        if given is None or given.kind == "array":
            parts = tuple(map(self.flow, given.children)) if given is not None else ()
            kind = combinator(self._tree, node)
            first_ends, settles = kind in ("race", "any"), kind == "allSettled"
            return NOTHING, Parallel(node.index, parts, False, first_ends, settles)
        before, body = self._callback_flow(given)
        return before, Parallel(node.index, (body,), is_repeated=True)

    def _method_loop(self, node: Node) -> tuple[Flow, Flow]:
        before, body = self._callback_flow(node)
        return before, Loop(node.index, NOTHING, body, NOTHING)

    def _callback_flow(self, call: Node) -> tuple[Flow, Flow]:
        """Return the flow before a method, and that of the callback it runs repeatedly."""
        function = (given_function(self._tree, call) or call).inner
        others = self._in_order(call["arguments"].children[1:])
        before = in_order(self._in(call, "function"), others)
        return before, self._invoked_in_place(function)

    def _invoked_in_place(self, function: Node) -> Flow:
        """Return the flow of a function invoked where it is written, or by its name."""
        if function.kind in INLINE_FUNCTIONS and function.index not in self._units:
            return Routine(self.bodies.get(function.index, NOTHING), certain=True)
        return Enter(function.index)

    def function(self, node: Node) -> Flow:
        """Return the flow of a function where it is written; none if it makes no call."""
        if not self._marked.within(node):
            return NOTHING
        body = self.bodies[node.index] = self._in_order(node.children)
        if node.index not in self._units:
            return Routine(body)
        return Enter(node.index, certain=False) if self._is(node, "written") else NOTHING
