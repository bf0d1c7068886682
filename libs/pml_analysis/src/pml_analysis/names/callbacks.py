"""Callbacks: how well-known methods call the function they are given."""

from typing import Final

from pml_analysis.syntax.patterns import Part
from pml_analysis.syntax.tree import Node, Tree

ELEMENT_OF: Final = frozenset(
    {
        "every",
        "filter",
        "find",
        "findIndex",
        "findLast",
        "findLastIndex",
        "flatMap",
        "forEach",
        "map",
        "some",
    }
)
"""Methods of a list that run a function on each element."""

_LOOPING: Final = ELEMENT_OF | {"reduce", "reduceRight"}
CHAINING: Final = frozenset({"then", "catch", "finally"})


def given_to(tree: Tree, function: Node) -> Part:
    """Return the value of the callback's first parameter: the resolved value of a promise, an
    element of a list."""
    arguments = function.above
    call = arguments.above if arguments.field == "arguments" else None
    if call is None or given_function(tree, call) is not function:
        return Part(None)
    name = method_of(tree, call)
    if name == "then":
        return Part(call["function"]["object"])
    return Part(call["function"]["object"], (None,)) if name in ELEMENT_OF else Part(None)


def given_function(tree: Tree, call: Node) -> Node | None:
    """Return the callback of a well-known method: the first argument of `items.map(f)`."""
    if call.kind != "call_expression" or method_of(tree, call) not in _LOOPING | CHAINING:
        return None
    arguments = call["arguments"].children
    return arguments[0] if arguments else None


def looping_method(tree: Tree, call: Node) -> str | None:
    """Return the name of the list method that runs a function on each element, if the call is
    one."""
    name = method_of(tree, call)
    return name if name in _LOOPING else None


def method_of(tree: Tree, call: Node) -> str | None:
    """Return the name of the called method, of `object.method(…)`."""
    callee = call.child("function")
    method = callee.child("property") if callee is not None else None
    return tree.name(method) if method is not None else None
