"""Control flow pass: the tree, reduced to the flow between calls, decisions and jumps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from pml_analyzer.domain.callbacks import given_function
from pml_analyzer.domain.choices import arms, case_outcome
from pml_analyzer.domain.flow import (
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
    Parallel,
    Routine,
    Step,
    Switch,
    in_order,
    perhaps,
)
from pml_analyzer.domain.flow import Sequence as InOrder
from pml_analyzer.domain.marks import INLINE, LOOPS, Mark, combinator, combined
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
_PATTERNS: Final = ("array_pattern", "object_pattern")
_CHAINED: Final = (
    "call_expression",
    "member_expression",
    "non_null_expression",
    "subscript_expression",
)
_RUNS_ON: Final = {"&&": True, "||": False, "??": True}
"""By operator: the outcome of its decision on which the right side runs."""


def control_flow(tree: Tree, marks: Sequence[Mark]) -> Mapping[int | None, Flow]:
    """The flow of the program (None) and of each local function, by the function's index.

    Raises TooDeep where constructs stand inside each other beyond what later passes follow.
    """
    reducer = _Reducer(tree, marks)
    for index in sorted(_relevant(tree, marks), reverse=True):
        reducer.reduce(tree.nodes[index])
    return {None: reducer.flow(tree.root), **reducer.bodies}


class _Reducer:
    """Reduces nodes one by one, children before their parents."""

    def __init__(self, tree: Tree, marks: Sequence[Mark]) -> None:
        self._tree = tree
        self._marks: dict[int, set[str]] = {}
        for mark in marks:
            self._marks.setdefault(mark.node.index, set()).add(mark.kind)
        self._units = {mark.unit.function.index for mark in marks if mark.unit is not None}
        self._done: dict[int, tuple[Flow, int]] = {}
        self.bodies: dict[int, Flow] = {}
        """What is in functions, by their index."""

    def reduce(self, node: Node) -> None:
        """What a node does, in the order it is evaluated."""
        below = [self._done[child.index] for child in node.children if child.index in self._done]
        case = self._CASES.get(node.kind)
        if case is None and len(below) == 1 and node.index not in self._marks:
            self._done[node.index] = below[0]
            return
        flow = case(self, node) if case is not None else self._plain(node)
        level = max((inner for _, inner in below), default=0) + _nests(
            flow, [inner for inner, _ in below]
        )
        if level > DEEPEST:
            raise TooDeep(node.start)
        self._done[node.index] = (flow, level)

    def flow(self, node: Node | None) -> Flow:
        """The flow of a reduced node; of any other, nothing."""
        return (
            self._done[node.index][0] if node is not None and node.index in self._done else NOTHING
        )

    def _is(self, node: Node, kind: str) -> bool:
        return kind in self._marks.get(node.index, ())

    def _in(self, node: Node, place: str) -> Flow:
        return self.flow(node.child(place))

    def _in_order(self, nodes: Iterable[Node]) -> Flow:
        return in_order(*map(self.flow, nodes))

    def _plain(self, node: Node) -> Flow:
        inside = self._in_order(node.children)
        # The name of a local function, given to a method that runs it when it likes.
        return Enter(node.index, certain=False) if self._is(node, "entry") else inside

    def _with_default(self, node: Node) -> Flow:
        return in_order(*map(self.flow, node.children[:1]), perhaps(self._rest(node)))

    def _rest(self, node: Node) -> Flow:
        return self._in_order(node.children[1:])

    def _declarator(self, node: Node) -> Flow:
        return in_order(self._in(node, "value"), self._in(node, "name"))

    def _assignment(self, node: Node) -> Flow:
        left, right = self._in(node, "left"), self._in(node, "right")
        opens = node["left"].kind in _PATTERNS  # defaults and keys come after the value
        return in_order(right, left) if opens else in_order(left, right)

    def _subscript(self, node: Node) -> Flow:
        index = self._in(node, "index")
        return in_order(self._in(node, "object"), perhaps(index) if self._ends(node) else index)

    def _short_circuit(self, node: Node) -> Flow:
        left, right = self._in(node, "left"), self._in(node, "right")
        if not arms(node):
            return in_order(left, right)
        if not self._is(node, "decision"):
            return in_order(left, perhaps(right))
        runs_on = _RUNS_ON[node["operator"].kind.removesuffix("=")]
        ways = (right, NOTHING) if runs_on else (NOTHING, right)
        return Branch(node.index, left, *ways)

    def _branch(self, node: Node) -> Flow:
        places = ("condition", "consequence", "alternative")
        parts = [self._in(node, place) for place in places]
        return Branch(node.index, *parts) if self._is(node, "decision") else in_order(*parts)

    def _call(self, node: Node) -> Flow:
        callee, arguments = node["function"], node["arguments"]
        if self._is(node, "parallel"):
            return self._parallel(node)
        if self._is(node, "loop"):
            return self._method_loop(node)
        function = callee.inner
        if function.kind in INLINE:  # called where it is written
            return in_order(self.flow(arguments), self._run_on_the_spot(function))
        given = self.flow(arguments)
        if self._ends(node):
            given = perhaps(given)
        flow = in_order(self.flow(callee), given)
        if self._is(node, "call"):
            return in_order(flow, Step(node.index))
        return in_order(flow, Enter(node.index)) if self._is(node, "entry") else flow

    def _ends(self, node: Node) -> bool:
        """Whether the chain that a call or an index belongs to may end before it."""
        while node.kind in _CHAINED:
            if any(child.kind == "optional_chain" for child in node.children):
                return True
            node = node.children[0]
        return False

    def _parallel(self, node: Node) -> Flow:
        given = combined(node)
        if given is None or given.kind == "array":
            parts = tuple(map(self.flow, given.children)) if given is not None else ()
            first_ends = combinator(self._tree, node) in ("race", "any")
            return Parallel(node.index, parts, is_repeated=False, first_ends=first_ends)
        before, body = self._handed_over(given)
        return in_order(before, Parallel(node.index, (body,), is_repeated=True))

    def _method_loop(self, node: Node) -> Flow:
        before, body = self._handed_over(node)
        return in_order(before, Loop(node.index, NOTHING, body, NOTHING))

    def _handed_over(self, call: Node) -> tuple[Flow, Flow]:
        """What runs before a method does, and what it runs again and again."""
        given = given_function(self._tree, call)
        function = None if given is None else given.inner
        others = self._in_order(call["arguments"].children[1:])
        before = in_order(self._in(call, "function"), others)
        if function is None:
            return before, NOTHING
        return before, self._run_on_the_spot(function)

    def _run_on_the_spot(self, function: Node) -> Flow:
        """What is run as it is written there, or by its name."""
        if function.kind in INLINE and function.index not in self._units:
            return Routine(self.bodies.get(function.index, NOTHING), certain=True)
        return Enter(function.index)

    def _function(self, node: Node) -> Flow:
        body = self.bodies[node.index] = self._in_order(node.children)
        if node.index not in self._units:
            return Routine(body)
        return Enter(node.index, certain=False) if self._is(node, "written") else NOTHING

    def _field(self, node: Node) -> Flow:
        """A field is made with each object, a static one with the class."""
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
                before, body = self._in(node, "right"), in_order(self._in(node, "left"), body)
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
        tests = [perhaps(self._in(clause, "value")) for clause in clauses]
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
        "call_expression": _call,
        "if_statement": _branch,
        "labeled_statement": _labelled,
        "object_assignment_pattern": _with_default,
        "optional_parameter": _with_default,
        "public_field_definition": _field,
        "required_parameter": _with_default,
        "subscript_expression": _subscript,
        "switch_statement": _switch,
        "ternary_expression": _branch,
        "try_statement": _try,
        "variable_declarator": _declarator,
        **dict.fromkeys(LOOPS, _loop),
        **dict.fromkeys(FUNCTIONS, _function),
        **dict.fromkeys(_JUMPS, _jump),
    }


def _nests(flow: Flow, below: Iterable[Flow]) -> bool:
    """Whether a flow puts others inside a new construct, not just one after the other."""
    known = {id(part) for inner in below for part in _parts(inner)}
    return any(not isinstance(part, LEAVES) and id(part) not in known for part in _parts(flow))


def _parts(flow: Flow) -> tuple[Flow, ...]:
    return flow.parts if isinstance(flow, InOrder) else (flow,)


def _is_endless(loop: Node) -> bool:
    """`for (;;)`, `while (true)`."""
    condition = loop.child("condition")
    if loop.kind == "for_statement":
        return condition is None or condition.kind == "empty_statement"
    return condition is not None and condition.inner.kind == "true"


def _relevant(tree: Tree, marks: Iterable[Mark]) -> set[int]:
    """The nodes with a call, a decision or a jump in them."""
    found: set[int] = set()
    marked = (mark.node for mark in marks)
    for start in (*marked, *tree.of(*_JUMPS)):
        node: Node | None = start
        while node is not None and node.index not in found:
            found.add(node.index)
            node = node.parent
    return found
