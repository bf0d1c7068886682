"""What well-known methods hand to the function they are given."""

from typing import Final

from pml_analyzer.syntax.patterns import Part
from pml_analyzer.syntax.tree import Node, Tree

_ELEMENT_OF: Final = frozenset(
    {"every", "filter", "find", "findIndex", "findLast", "flatMap", "forEach", "map", "some"}
)


def given_to(tree: Tree, function: Node) -> Part:
    """The value of the first parameter: what a promise resolves to, an element of a list."""
    arguments = function.above
    callee = arguments.above.child("function") if arguments.field == "arguments" else None
    method = callee.child("property") if callee is not None else None
    if callee is None or method is None or arguments.children[0] is not function:
        return Part(None)
    name = tree.name(method)
    if name == "then":
        return Part(callee["object"])
    return Part(callee["object"], (None,)) if name in _ELEMENT_OF else Part(None)
