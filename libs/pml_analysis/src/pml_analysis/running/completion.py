"""Completion: programs that end without their result.

A program is the body of a function. Sent as a function that nobody calls, or with its result as the
last expression, as a notebook shows it, it would do nothing or give nothing.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from pml_analysis.names.bindings import Binding, Scopes
from pml_analysis.names.origins import BOUND_ROOTS, IMPLICIT_ROOTS
from pml_analysis.running.instrument import arguments_name
from pml_analysis.structure.calls import Calls
from pml_analysis.structure.promises import Promises
from pml_analysis.syntax.edits import Edited, Wrap, apply
from pml_analysis.syntax.node_kinds import (
    BINDING_NAMES,
    CLASSES,
    FUNCTIONS,
    HOISTED,
    INLINE_FUNCTIONS,
    PLAIN_FUNCTIONS,
    SILENT,
    TYPES,
)
from pml_analysis.syntax.tree import Node, Tree, returns

_BESIDE: Final = frozenset({*HOISTED, *SILENT, *TYPES})
"""Kinds of statements that do nothing where they stand."""

_DEFINITIONS: Final = _BESIDE | {
    *CLASSES,
    "enum_declaration",
    "lexical_declaration",
    "variable_declaration",
}
_NO_RESULT: Final = frozenset(
    {
        "assignment_expression",
        "augmented_assignment_expression",
        "class",
        "generator_function",
        "new_expression",
        "null",
        "undefined",
        "unary_expression",
        "update_expression",
    }
)
"""Kinds of expressions that stand alone for their effect, or have no result."""

_CHOOSING: Final = frozenset({"&&", "||", "??"})
_EFFECTS: Final = frozenset(
    {
        *("add", "clear", "copyWithin", "delete", "fill", "forEach", "pop", "push", "reverse"),
        *("set", "shift", "sort", "splice", "unshift"),
    }
)
"""Methods that are called for what they change."""

_TIMERS: Final = frozenset({"queueMicrotask", "setInterval", "setTimeout"})
_PASSED: Final = ("mcp", "capabilities")
"""Globals that programs written for other hosts take as parameters."""


_WHOLE: Final = (*BOUND_ROOTS, *IMPLICIT_ROOTS)
_SEND: Final = "Send the body of an async function: statements that end with return."


class Completed(NamedTuple):
    """A program that returns its result, and what was changed."""

    edited: Edited
    notice: str


def completed(tree: Tree, scopes: Scopes, calls: Calls, promises: Promises) -> Completed | None:
    """Complete a program that returns nothing: call its function, or return its last expression,
    but for a promise that nothing waits for, which is an error when it runs. Returns None for a
    program that is left as it is."""
    statements = tree.root.children
    if returns(tree.root):
        return None
    if all(map(_is_definition, statements)):
        return _calling_by_name(tree, scopes, statements)
    last = [each for each in statements if each.kind not in _BESIDE][-1]
    if last.kind != "expression_statement" or tree.source.text[last.start] == "{":
        return None
    value = last.children[0]
    if value.inner.kind in INLINE_FUNCTIONS:
        return _calling(tree, scopes, value)
    called = [site.call for site in calls.sites] + calls.dynamic
    lost = {node.index for node in promises.lost()}
    results = _Results(tree, scopes, {call.index for call in called}, lost)
    if not called or not results.has(value):
        return None
    notice = (
        "The program returned nothing, so the value of its last expression (line "
        f"{tree.position(value).line}) is its result: write return before it."
    )
    return Completed(apply(tree.source.text, [Wrap(value.start, value.start, "return ")]), notice)


def _is_definition(statement: Node) -> bool:
    if statement.kind != "expression_statement":
        return statement.kind in _DEFINITIONS
    return statement.children[0].kind == "string"  # a directive


def _calling(tree: Tree, scopes: Scopes, value: Node) -> Completed | None:
    """Call a function that is the last expression."""
    given = _given(tree, scopes, value.inner)
    if given is None:
        return None
    notice = f"The program was a function that nobody called: it was called{_with(given)}. {_SEND}"
    wrap = Wrap(value.start, value.end, "return await (", f")({given})")
    return Completed(apply(tree.source.text, [wrap]), notice)


class _Function(NamedTuple):
    """A named function of the program, and the statement that defines it."""

    name: str
    node: Node
    statement: Node


def _calling_by_name(tree: Tree, scopes: Scopes, statements: Sequence[Node]) -> Completed | None:
    """Call the function that ends a program of definitions, or the only one that nobody calls."""
    unused = list(_unused(tree, scopes, statements))
    lasting = [each for each in statements if each.kind not in TYPES and each.kind not in SILENT]
    ending = [each for each in unused if each.statement is lasting[-1]]
    chosen = ending[-1] if ending else unused[0] if len(unused) == 1 else None
    given = None if chosen is None else _given(tree, scopes, chosen.node)
    if chosen is None or given is None:
        return None
    notice = (
        f"The program defined {chosen.name}, which nobody called: it was called{_with(given)}. "
        f"{_SEND}"
    )
    end = statements[-1].end
    wrap = Wrap(end, end, f"; return await {chosen.name}({given});")
    return Completed(apply(tree.source.text, [wrap]), notice)


def _unused(tree: Tree, scopes: Scopes, statements: Sequence[Node]) -> Iterator[_Function]:
    """Yield the functions that only they themselves use."""
    for statement in statements:
        for named in (statement, *statement.children):
            node = named.child("value") if named.kind == "variable_declarator" else named
            function = None if node is None else node.inner
            if function is None or function.kind not in PLAIN_FUNCTIONS:
                continue
            name = named.child("name")
            binding = None if name is None else scopes.binding(name)
            if binding is not None and _is_unused(binding, function):
                yield _Function(binding.name, function, statement)


def _is_unused(binding: Binding, function: Node) -> bool:
    is_inside = (function.index < use.index < function.stop for use in binding.uses)
    return len(binding.parts) == 1 and all(is_inside)


def _given(tree: Tree, scopes: Scopes, function: Node) -> str | None:
    """Return what a function is called with: the caller's arguments for its first parameter, and
    globals for those that are named like them. None if it takes more, or they have no name."""
    single, several = function.child("parameter"), function.child("parameters")
    patterns = [single] if single is not None else []
    for parameter in several.children if several is not None else ():
        pattern, value = parameter["pattern"], parameter.child("value")
        if pattern.kind == "rest_pattern" or (value is not None and value.kind != "object"):
            break  # it needs nothing
        patterns.append(pattern)
    whole = arguments_name(scopes.top)
    given: list[str] = []
    for pattern in patterns:
        names = {tree.name(node) for node in tree.subtree(pattern) if node.kind in BINDING_NAMES}
        passed = [name for name in _PASSED if name in names and name not in scopes.top]
        if pattern.kind == "identifier" and passed:
            given += passed
        elif whole is None or (given and names.isdisjoint(_WHOLE) and not passed):
            return None
        else:
            given.append(f"{{ ...{whole}, {', '.join(passed)} }}" if passed else whole)
    return ", ".join(given)


def _with(given: str) -> str:
    return f" with {given}" if given else ""


@dataclass(frozen=True)
class _Results:
    """Tells expressions with a result from those that stand for their effect, or may be promises;
    `called` are the calls of tools and capabilities, `lost` those whose promise is dropped, by
    index."""

    tree: Tree
    scopes: Scopes
    called: Set[int]
    lost: Set[int]

    def has(self, node: Node) -> bool:
        """Whether an expression has a result."""
        node, is_awaited = node.inner, False
        while node.kind == "await_expression" and node.operand is not None:
            node, is_awaited = node.operand.inner, True
        match node.kind:
            case "identifier" if not is_awaited:
                return not self._may_hold_promises(node)
            case "binary_expression":
                return node["operator"].kind not in _CHOOSING or self.has(node["right"])
            case "ternary_expression":
                return self.has(node["consequence"]) or self.has(node["alternative"])
            case "sequence_expression":
                return self.has(node.children[-1])
            case "call_expression":
                gives = node.index in self.called or self._gives(node["function"].inner)
                is_waited = is_awaited or node.index in self.called or not self._calls_in(node)
                return gives and is_waited and node.index not in self.lost
            case kind:
                return kind not in _NO_RESULT

    def _may_hold_promises(self, name: Node) -> bool:
        """Whether a name is that of a function, or of what calls tools and was not awaited."""
        binding = self.scopes.binding(name)
        values = [part.value for part in binding.parts] if binding is not None else []
        return any(
            value is not None
            and value.inner.kind != "await_expression"
            and (value.inner.kind in FUNCTIONS or self._calls_in(value))
            for value in values
        )

    def _calls_in(self, node: Node) -> bool:
        """Whether an expression makes a call that nothing in it waits for."""
        return any(
            not self._is_awaited(self.tree.nodes[index], node)
            for index in self.called
            if node.index <= index < node.stop
        )

    def _is_awaited(self, call: Node, within: Node) -> bool:
        is_awaited, above = False, call
        while above is not within:
            above = above.above
            # The caller of a function does not wait for what the function waits for.
            is_awaited = above.kind not in FUNCTIONS and (
                is_awaited or above.kind == "await_expression"
            )
        return is_awaited

    def _gives(self, callee: Node) -> bool:
        """Whether what is called, no tool, gives a result."""
        if callee.kind == "identifier":
            return self.tree.name(callee) not in _TIMERS
        if callee.kind != "member_expression":
            return True
        of, name = callee["object"].inner, self.tree.name(callee["property"])
        is_console = of.kind == "identifier" and self.tree.name(of) == "console"
        return name not in _EFFECTS and not is_console
