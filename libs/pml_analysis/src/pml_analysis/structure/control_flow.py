"""Control flow pass: the tree, reduced to the flow between calls, decisions and jumps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from pml_analysis.names.choices import arms, case_outcome
from pml_analysis.structure.call_flow import CallFlow
from pml_analysis.structure.flow import (
    LEAVES,
    NOTHING,
    Attempt,
    Branch,
    Enter,
    Flow,
    Jump,
    JumpKind,
    Labelled,
    Loop,
    Routine,
    Switch,
    in_order,
    maybe,
)
from pml_analysis.structure.flow import Sequence as InOrder
from pml_analysis.structure.marks import Mark
from pml_analysis.syntax.node_kinds import FUNCTIONS, LOOPS, PATTERNS
from pml_analysis.syntax.parser import TooDeep
from pml_analysis.syntax.tree import Node, Tree

MAX_NESTING = 150
"""Maximum nesting of constructs: the limit of a recursive pass."""

_JUMPS: dict[str, JumpKind] = {
    "break_statement": "break",
    "continue_statement": "continue",
    "return_statement": "return",
    "throw_statement": "throw",
}
_RUNS_ON: Final = {"&&": True, "||": False, "??": True}
"""By operator: the outcome of its decision on which the right side runs."""


def control_flow(tree: Tree, marks: Sequence[Mark]) -> Mapping[int | None, Flow]:
    """Return the flow of the program (None) and of each local function, by the function's index.

    Raises TooDeep where constructs nest deeper than later passes follow.
    """
    reducer = _Reducer(tree, marks)
    for index in sorted(_relevant(tree, marks), reverse=True):
        reducer.reduce(tree.nodes[index])
    return {None: reducer.flow(tree.root), **reducer.bodies}


class _Reducer(CallFlow):
    """Reduces nodes one by one, children before their parents."""

    def reduce(self, node: Node) -> None:
        """Return the flow of a node, in evaluation order."""
        below = [self._done[child.index] for child in node.children if child.index in self._done]
        case = self._CASES.get(node.kind)
        if case is None and len(below) == 1 and node.index not in self._marks:
            self._done[node.index] = below[0]
            return
        flow = case(self, node) if case is not None else self._plain(node)
        level = max((inner for _, inner in below), default=0) + _nests(
            flow, [inner for inner, _ in below]
        )
        if level > MAX_NESTING:
            raise TooDeep(node.start)
        self._done[node.index] = (flow, level)

    def _plain(self, node: Node) -> Flow:
        inside = self._in_order(node.children)
        # The name of a local function, passed to a method that runs it at an unknown time.
        return Enter(node.index, certain=False) if self._is(node, "entry") else inside

    def _with_default(self, node: Node) -> Flow:
        return in_order(*map(self.flow, node.children[:1]), maybe(self._rest(node)))

    def _rest(self, node: Node) -> Flow:
        return self._in_order(node.children[1:])

    def _declarator(self, node: Node) -> Flow:
        return in_order(self._in(node, "value"), self._in(node, "name"))

    def _assignment(self, node: Node) -> Flow:
        left, right = self._in(node, "left"), self._in(node, "right")
        opens = node["left"].kind in PATTERNS  # defaults and keys come after the value
        return in_order(right, left) if opens else in_order(left, right)

    def _short_circuit(self, node: Node) -> Flow:
        left, right = self._in(node, "left"), self._in(node, "right")
        if not arms(node):
            return in_order(left, right)
        if not self._is(node, "decision"):
            return in_order(left, maybe(right))
        runs_on = _RUNS_ON[node["operator"].kind.removesuffix("=")]
        branches = (right, NOTHING) if runs_on else (NOTHING, right)
        return Branch(node.index, left, *branches)

    def _branch(self, node: Node) -> Flow:
        places = ("condition", "consequence", "alternative")
        parts = [self._in(node, place) for place in places]
        return Branch(node.index, *parts) if self._is(node, "decision") else in_order(*parts)

    def _field(self, node: Node) -> Flow:
        """Return the flow of a field: with each object, or with the class if it is static."""
        made = self._in_order(node.children)
        return made if any(child.kind == "static" for child in node.children) else Routine(made)

    def _jump(self, node: Node) -> Flow:
        label = node.child("label")
        name = self._tree.name(label) if label is not None else None
        return in_order(self._in_order(node.children), Jump(_JUMPS[node.kind], name))

    def _labelled(self, node: Node) -> Flow:
        return Labelled(self._tree.name(node["label"]), self._in(node, "body"))

    def _loop(self, node: Node) -> Flow:
        if not self._is(node, "loop"):
            return NOTHING
        head, body, tail = self._in(node, "condition"), self._in(node, "body"), NOTHING
        before = NOTHING
        match node.kind:
            case "for_statement":
                before, tail = self._in(node, "initializer"), self._in(node, "increment")
            case "for_in_statement":
                # Destructuring happens before the report of the round.
                before, head = self._in(node, "right"), maybe(self._in(node, "left"))
            case "do_statement":
                head, tail = NOTHING, head
            case _:
                pass
        loop = Loop(node.index, head, body, tail, self._labels(node), _is_endless(node))
        return in_order(before, loop)

    def _labels(self, loop: Node) -> tuple[str, ...]:
        found: list[str] = []
        above = loop.above
        while above.kind == "labeled_statement":
            found.append(self._tree.name(above["label"]))
            above = above.above
        return tuple(found)

    def _switch(self, node: Node) -> Flow:
        if not self._is(node, "decision"):
            return NOTHING
        clauses = node["body"].children
        tests = [maybe(self._in(clause, "value")) for clause in clauses]
        subject = in_order(self._in(node, "value"), *tests)
        cases = tuple(
            (
                case_outcome(self._tree, clause),
                self._in_order(child for child in clause.children if child.field == "body"),
            )
            for clause in clauses
        )
        has_default = any(clause.kind == "switch_default" for clause in clauses)
        return Switch(node.index, subject, cases, has_default)

    def _try(self, node: Node) -> Flow:
        handler, finalizer = node.child("handler"), node.child("finalizer")
        return Attempt(
            node.index if self._is(node, "decision") else None,
            self._in(node, "body"),
            None if handler is None else self.flow(handler),
            None if finalizer is None else self.flow(finalizer),
        )

    _CASES: ClassVar[dict[str, Callable[["_Reducer", Node], Flow]]] = {
        "assignment_expression": _assignment,
        "assignment_pattern": _with_default,
        "augmented_assignment_expression": _short_circuit,
        "binary_expression": _short_circuit,
        "call_expression": CallFlow.call,
        "if_statement": _branch,
        "labeled_statement": _labelled,
        "object_assignment_pattern": _with_default,
        "optional_parameter": _with_default,
        "public_field_definition": _field,
        "required_parameter": _with_default,
        "subscript_expression": CallFlow.subscript,
        "switch_statement": _switch,
        "ternary_expression": _branch,
        "try_statement": _try,
        "variable_declarator": _declarator,
        **dict.fromkeys(LOOPS, _loop),
        **dict.fromkeys(FUNCTIONS, CallFlow.function),
        **dict.fromkeys(_JUMPS, _jump),
    }


def _nests(flow: Flow, below: Iterable[Flow]) -> bool:
    """Whether a flow nests others in a new construct, not just in a sequence."""
    if isinstance(flow, LEAVES) or flow is NOTHING:
        return False
    known = {id(part) for inner in below for part in _parts(inner)}
    return any(not isinstance(part, LEAVES) and id(part) not in known for part in _parts(flow))


def _parts(flow: Flow) -> tuple[Flow, ...]:
    return flow.parts if isinstance(flow, InOrder) else (flow,)


def _is_endless(loop: Node) -> bool:
    """Whether it is `for (;;)` or `while (true)`."""
    condition = loop.child("condition")
    if loop.kind == "for_statement":
        return condition is None or condition.kind == "empty_statement"
    return condition is not None and condition.inner.kind == "true"


def _relevant(tree: Tree, marks: Iterable[Mark]) -> set[int]:
    """Return the nodes that contain a call, a decision or a jump."""
    found: set[int] = set()
    marked = (mark.node for mark in marks)
    for start in (*marked, *tree.of(*_JUMPS)):
        node: Node | None = start
        while node is not None and node.index not in found:
            found.add(node.index)
            node = node.parent
    return found
