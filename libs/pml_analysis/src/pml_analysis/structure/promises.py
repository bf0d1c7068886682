"""Promises pass: calls whose result is never awaited, or is used before it is there."""

from collections.abc import Iterator, Sequence
from typing import Final

from pml_analysis.names.builtins import Builtins
from pml_analysis.names.callbacks import given_function, looping_method
from pml_analysis.names.choices import arms
from pml_analysis.names.origins import Origins
from pml_analysis.structure.calls import Calls
from pml_analysis.structure.marks import Mark, Places
from pml_analysis.syntax.node_kinds import CONDITIONALS, INLINE_FUNCTIONS, MEMBERS, WRAPPERS
from pml_analysis.syntax.tree import Node
from pml_analysis.text.problems import Problem

_CHAINING: Final = frozenset({"catch", "finally", "then"})
_ASKING: Final = frozenset(
    {"every", "filter", "find", "findIndex", "findLast", "findLastIndex", "some"}
)
"""Methods that use a callback's result as a condition."""

_CHOOSING: Final = frozenset({"&&", "||", "??", "instanceof"})
_READING: Final = frozenset({"JSON", "Math", "Number", "Object", "String", "console", "parseInt"})
_DROPPED: Final = (
    "Nothing waits for this call: the program may end before it, and its failure is not seen; "
    "write await."
)
_UNREADY: Final = "The result of this call is not there yet: write await before the call{}."


class Promises:
    """The calls of a program that return promises, and their uses."""

    def __init__(
        self, origins: Origins, builtins: Builtins, calls: Calls, marks: Sequence[Mark]
    ) -> None:
        self._origins = origins
        self._tree = origins.tree
        self._builtins = builtins
        entries = [mark for mark in marks if mark.kind == "entry"]
        direct = [site.call for site in calls.sites]
        self._places = Places(node.index for node in [*direct, *(mark.node for mark in entries)])
        self._sites = {call.index for call in direct}
        self._promised = [
            *direct,
            *(
                mark.node
                for mark in entries
                if mark.node.kind == "call_expression"
                and mark.unit is not None
                and _is_async(mark.unit.function)
            ),
            *(call for call in self._tree.of("call_expression") if self._runs_async(call)),
        ]

    def problems(self) -> Iterator[Problem]:
        """Yield each call at most once."""
        for call in self._promised:
            why = self._misuse(call)
            if why is not None:
                yield Problem(call.start, why)
        for call in self._tree.of("call_expression"):
            yield from self._callback(call)

    def dropped(self) -> Iterator[Node]:
        """Yield the calls of local async functions, with what is chained to them, whose promise is
        dropped."""
        return (last for call, last in self._lost() if call.index not in self._sites)

    def lost(self) -> Iterator[Node]:
        """Yield the calls, also of tools, with what is chained to them, whose promise is
        dropped."""
        return (last for _, last in self._lost())

    def _lost(self) -> Iterator[tuple[Node, Node]]:
        for call in self._promised:
            if self._misuse(call) is _DROPPED:
                yield call, self._last_link(call)

    def _runs_async(self, call: Node) -> bool:
        """Whether it is `(async () => { … })()` with calls in it."""
        function = call["function"].inner
        return (
            function.kind in INLINE_FUNCTIONS
            and _is_async(function)
            and self._places.within(function)
        )

    def _misuse(self, call: Node) -> str | None:
        value = self._last_link(call)
        if _is_dropped(value):
            return _DROPPED
        use = "" if value is not call else self._use(value)
        if use:
            return _UNREADY.format(use if use != "." else "")
        name = _named(value)
        binding = self._origins.scopes.binding(name) if name is not None else None
        if name is None or binding is None or len(binding.parts) != 1:
            return None
        if not binding.uses:
            return _DROPPED
        if value is call and any(self._use(use) for use in binding.uses):
            return _UNREADY.format(f", or before {binding.name} where it is used")
        return None

    def _last_link(self, call: Node) -> Node:
        """Return the end of `call.then(…).catch(…)`: a promise as well."""
        while True:
            value = _wrapped(call)
            member = value.above
            if not (member.kind in MEMBERS and member.operand is value):
                return call
            above = member.above
            if self._origins.key(member) not in _CHAINING or above.kind != "call_expression":
                return call
            call = above

    def _use(self, node: Node) -> str:
        """Describe how a promise is misused as its result: the addition to the advice, or `.`;
        empty when it is not."""
        node = _wrapped(node)
        above = node.above
        if above.kind in MEMBERS and above.operand is node:
            key = self._origins.key(above)
            return "" if key in _CHAINING or key is None else ", in parentheses"
        return "." if self._is_read(node, above) else ""

    def _is_read(self, node: Node, above: Node) -> bool:
        match above.kind:
            case "template_substitution":
                return above.above.field != "arguments"
            case "variable_declarator":
                return above["name"].kind != "identifier"
            case "binary_expression":
                return above["operator"].kind not in _CHOOSING
            case "unary_expression":
                return above["operator"].kind in ("!", "+", "-")
            case "for_in_statement":
                return node.field == "right" and all(c.kind != "await" for c in above.children)
            case "spread_element":
                return True
            case "arguments":
                path = self._builtins.path(above.above.children[0])
                is_read = path is not None and path[0] in _READING
                return is_read or self._is_given(node)
            case kind:
                return (kind in CONDITIONALS and node.field == "condition") or self._is_given(node)

    def _is_given(self, node: Node) -> bool:
        """Whether it is a value in the arguments of a tool."""
        above = node.above
        while above.kind in ("array", "object", "pair") and node.field != "key":
            node, above = above, above.above
        return above.kind == "arguments" and above.above.index in self._sites

    def _callback(self, call: Node) -> Iterator[Problem]:
        """Return async functions passed to methods that do not await them."""
        method = looping_method(self._tree, call)
        function = given_function(self._tree, call) if method is not None else None
        if method is None or function is None or function.kind not in INLINE_FUNCTIONS:
            return
        if not self._places.within(function) or not self._gives_promise(function):
            return
        if method == "forEach":
            message = (
                "forEach does not wait for its function: write for (const … of …) with await, or "
                "await Promise.all(….map(…))."
            )
            yield Problem(function.start, message)
        elif method in _ASKING:
            message = f"{method} takes every promise for true: await the calls before it."
            yield Problem(function.start, message)
        elif method in ("flatMap", "map") and self._is_lost(call):
            message = "Nothing waits for these promises: write await Promise.all(….map(…))."
            yield Problem(function.start, message)

    def _gives_promise(self, function: Node) -> bool:
        body = function["body"].inner
        return _is_async(function) or body.index in self._sites

    def _is_lost(self, call: Node) -> bool:
        value = _wrapped(call)
        return value.above.kind == "await_expression" or _is_dropped(value)


def _is_async(function: Node) -> bool:
    return any(child.kind == "async" for child in function.children)


def _wrapped(node: Node) -> Node:
    """Return the widest wrapper of an expression, the parentheses of a condition included."""
    while node.above.kind in WRAPPERS:
        node = node.above
    return node


def _is_dropped(node: Node) -> bool:
    """Whether the value of an expression is dropped."""
    node = _wrapped(node)
    while True:
        above = node.above
        if above.kind == "expression_statement":
            return True
        if above.kind == "sequence_expression" and above.children[-1] is not node:
            return True
        if above.kind.endswith("assignment_expression") or node not in arms(above):
            return False
        node = _wrapped(above)


def _named(node: Node) -> Node | None:
    """Return the name that a declaration gives to a value."""
    node = _wrapped(node)
    above = node.above
    if above.kind != "variable_declarator" or above["name"].kind != "identifier":
        return None
    return above["name"]
