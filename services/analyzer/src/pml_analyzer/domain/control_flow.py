"""Control flow pass: the tree, reduced to the flow between calls, decisions and jumps."""

from collections.abc import Callable, Iterable, Mapping

from pml_analyzer.domain.choices import arms
from pml_analyzer.domain.flow import (
    NOTHING,
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
    Step,
    in_order,
)
from pml_analyzer.syntax.parser import TooDeep
from pml_analyzer.syntax.tree import FUNCTIONS, Node, Tree

DEEPEST = 150
"""How many constructs may stand inside each other: what a recursive pass can follow."""

_JUMPS: dict[str, JumpKind] = {
    "break_statement": "break",
    "continue_statement": "continue",
    "return_statement": "return",
    "throw_statement": "throw",
}


def control_flow(tree: Tree, tasks: Mapping[int, str], decisions: Mapping[int, str]) -> Flow:
    """The flow of a program; `tasks` and `decisions` are node ids by index of the syntax node.

    Raises TooDeep where constructs stand inside each other beyond what later passes follow.
    """
    reducer = _Reducer(tree, tasks, decisions)
    for index in sorted(_relevant(tree, (*tasks, *decisions)), reverse=True):
        reducer.reduce(tree.nodes[index])
    return reducer.flow(tree.root)


class _Reducer:
    """Reduces nodes one by one, children before their parents."""

    def __init__(self, tree: Tree, tasks: Mapping[int, str], decisions: Mapping[int, str]) -> None:
        self._tree = tree
        self._tasks = tasks
        self._decisions = decisions
        self._done: dict[int, tuple[Flow, int]] = {}
        self._cases: dict[str, Callable[[Node], Flow]] = {
            "augmented_assignment_expression": self._short_circuit,
            "binary_expression": self._short_circuit,
            "do_statement": self._do,
            "for_in_statement": self._for_in,
            "for_statement": self._for,
            "if_statement": self._branch,
            "labeled_statement": self._labelled,
            "switch_statement": self._switch,
            "ternary_expression": self._branch,
            "try_statement": self._try,
            "while_statement": self._while,
            **dict.fromkeys(FUNCTIONS, self._function),
            **dict.fromkeys(_JUMPS, self._jump),
        }

    def reduce(self, node: Node) -> None:
        """What a node does, in the order it is evaluated."""
        below = [self._done[child.index] for child in node.children if child.index in self._done]
        case = self._cases.get(node.kind)
        if case is None and len(below) == 1 and node.index not in self._tasks:
            self._done[node.index] = below[0]
            return
        level = max((inner for _, inner in below), default=0) + (case is not None)
        if level > DEEPEST:
            raise TooDeep(node.start)
        self._done[node.index] = (case(node) if case is not None else self._in_order(node), level)

    def flow(self, node: Node | None) -> Flow:
        """The flow of a reduced node; of any other, nothing."""
        return (
            self._done[node.index][0] if node is not None and node.index in self._done else NOTHING
        )

    def _in(self, node: Node, place: str) -> Flow:
        return self.flow(node.child(place))

    def _in_order(self, node: Node) -> Flow:
        parts = [self.flow(child) for child in _as_evaluated(node)]
        task = self._tasks.get(node.index)
        return in_order(*parts) if task is None else in_order(*parts, Step(task))

    def _short_circuit(self, node: Node) -> Flow:
        left, right = self._in(node, "left"), self._in(node, "right")
        return in_order(left, Perhaps(right) if arms(node) and right is not NOTHING else right)

    def _branch(self, node: Node) -> Flow:
        decision = self._decisions.get(node.index)
        if decision is None:
            return self._in_order(node)
        places = ("condition", "consequence", "alternative")
        return Branch(decision, *(self._in(node, place) for place in places))

    def _function(self, node: Node) -> Flow:
        return Routine(self._in_order(node))

    def _jump(self, node: Node) -> Flow:
        label = node.child("label")
        name = self._tree.name(label) if label is not None else None
        return in_order(self._in_order(node), Jump(_JUMPS[node.kind], name))

    def _labelled(self, node: Node) -> Flow:
        return Labelled(self._tree.name(node["label"]), self._in(node, "body"))

    def _for(self, node: Node) -> Flow:
        head, body, tail = (self._in(node, p) for p in ("condition", "body", "increment"))
        return in_order(self._in(node, "initializer"), Repeat(head, body, tail))

    def _for_in(self, node: Node) -> Flow:
        body = in_order(self._in(node, "left"), self._in(node, "body"))
        return in_order(self._in(node, "right"), Repeat(NOTHING, body, NOTHING))

    def _while(self, node: Node) -> Flow:
        return Repeat(self._in(node, "condition"), self._in(node, "body"), NOTHING)

    def _do(self, node: Node) -> Flow:
        tail = self._in(node, "condition")
        return Repeat(NOTHING, self._in(node, "body"), tail, at_least_once=True)

    def _switch(self, node: Node) -> Flow:
        cases = node["body"].children
        exhaustive = any(case.kind == "switch_default" for case in cases)
        return Choice(self._in(node, "value"), tuple(map(self.flow, cases)), exhaustive)

    def _try(self, node: Node) -> Flow:
        handler, finalizer = node.child("handler"), node.child("finalizer")
        return Attempt(
            self._in(node, "body"),
            None if handler is None else self.flow(handler),
            None if finalizer is None else self.flow(finalizer),
        )


def _as_evaluated(node: Node) -> list[Node]:
    """The children in the order of their effects: a function called where it is written runs after
    its arguments are made."""
    calls = node.kind == "call_expression" and node["function"].inner.kind in FUNCTIONS
    return node.children[::-1] if calls else node.children


def _relevant(tree: Tree, nodes: Iterable[int]) -> set[int]:
    """The nodes with a call, a decision or a jump in them."""
    found: set[int] = set()
    for index in (*nodes, *(jump.index for jump in tree.of(*_JUMPS))):
        node: Node | None = tree.nodes[index]
        while node is not None and node.index not in found:
            found.add(node.index)
            node = node.parent
    return found
