"""Units pass: local functions with one fixed name, and every place that runs them."""

from dataclasses import dataclass, field
from typing import Final

from pml_analysis.names.bindings import Binding, Scopes
from pml_analysis.names.callbacks import given_function
from pml_analysis.names.globals import GLOBALS
from pml_analysis.syntax.node_kinds import GENERATORS, PLAIN_FUNCTIONS, WRAPPERS
from pml_analysis.syntax.tree import Node, Tree

_LATE: Final = frozenset({"await_expression", "new_expression"}) | PLAIN_FUNCTIONS
"""Constructs excluded from a parameter's default, which would run before the body begins. It may
call only built-ins, too."""


_IMPLICIT_CALLS: Final = (
    *("Proxy", "Symbol", "definePropert", "toPrimitive", "toString", "valueOf", "\\u"),
)
"""Substrings of which a text contains one if its values run functions when they are read; getters
aside."""


_MARKS: Final = frozenset({"get", "*"})
"""Tokens that make a method a getter, or a generator."""


@dataclass(slots=True, eq=False)
class Unit:
    """A local function. `entries` are the calls that run it, and the uses of its name as the
    callback of a method that runs it; `is_loose` when it may have other callers (then it counts
    where it is written), or never runs."""

    function: Node
    name: str
    entries: list[Node] = field(default_factory=list[Node])
    is_loose: bool = False


def find_units(tree: Tree, scopes: Scopes) -> list[Unit]:
    """Return every local function whose name is never anything else, in source order."""
    units: dict[int, Unit] = {}
    known_outside: set[int] = set()
    for binding in scopes.bindings:
        function = _function_of(tree, binding, scopes)
        if function is not None:
            unit = units.setdefault(function.index, Unit(function, binding.name))
            if not _is_own_name(binding, function):
                known_outside.add(function.index)
            for use in binding.uses:
                _note(tree, unit, use)
    found = [
        units[index]
        for index in sorted(units)
        if index in known_outside or units[index].entries or units[index].is_loose
    ]
    for unit in found:
        is_run_by_name = unit.entries and unit.function.index in known_outside
        unit.is_loose = unit.is_loose or not is_run_by_name
    return found


def _is_own_name(binding: Binding, function: Node) -> bool:
    """Whether the name is visible inside the function only: `(function f() { f(); })()`."""
    return function.kind == "function_expression" and binding.node.above is function


def _function_of(tree: Tree, binding: Binding, scopes: Scopes) -> Node | None:
    if len(binding.parts) != 1 or binding.starts_absent:
        return None
    (part,) = binding.parts
    if part.value is None or part.path or part.is_default or _is_written(binding, scopes):
        return None
    function = part.value.inner
    if function.kind not in PLAIN_FUNCTIONS or _has_late_defaults(tree, function, scopes):
        return None
    return function


def _is_written(binding: Binding, scopes: Scopes) -> bool:
    return any(use.index in scopes.written for use in binding.uses)


def _has_late_defaults(tree: Tree, function: Node, scopes: Scopes) -> bool:
    parameters = function.child("parameters")
    if parameters is not None and not _is_simple(parameters) and has_implicit_calls(tree):
        return True
    return parameters is not None and any(
        node.kind in _LATE
        or (node.kind == "call_expression" and not _is_built_in(tree, node["function"], scopes))
        for node in tree.subtree(parameters)
    )


def _is_simple(parameters: Node) -> bool:
    """Whether all parameters are plain names: binding them runs nothing."""
    return all(
        one.child("value") is None
        and (pattern := one.child("pattern")) is not None
        and pattern.kind == "identifier"
        for one in parameters.children
    )


def has_implicit_calls(tree: Tree) -> bool:
    """Whether code of the program may run where a value is merely read."""
    is_said = any(sign in tree.source.text for sign in _IMPLICIT_CALLS)
    return is_said or any(
        method.kind != "method_definition" or any(child.kind in _MARKS for child in method.children)
        for method in tree.of("method_definition", *GENERATORS)
    )


def _is_built_in(tree: Tree, callee: Node, scopes: Scopes) -> bool:
    """Whether a callee is a built-in: `Object.keys`, `String`."""
    while callee.kind == "member_expression":
        callee = callee["object"]
    is_free = callee.kind == "identifier" and scopes.binding(callee) is None
    return is_free and tree.name(callee) in GLOBALS


def _note(tree: Tree, unit: Unit, use: Node) -> None:
    """Record the effect of one use of the name."""
    value = use
    while value.above.kind in WRAPPERS:
        value = value.above
    above = value.above
    if above.kind == "call_expression" and value.field == "function":
        unit.entries.append(above)
    elif above.kind == "arguments" and given_function(tree, above.above) is value:
        unit.entries.append(use)
    elif above.kind != "unary_expression":  # typeof f
        unit.is_loose = True
