"""Constant folding: values of literals, and of constants composed from others."""

from typing import Final

from pml_analysis.names.values import ABSENT, UNKNOWN, Constant, Origin, constant
from pml_analysis.syntax.literals import number_value, string_value
from pml_analysis.syntax.tree import Node, Tree

MAX_COMPOSED: Final = 4_096
"""Characters of a composed text: doubling a name repeatedly would exhaust the memory."""


def literal(tree: Tree, node: Node) -> Origin:
    """Return the constant of a literal."""
    match node.kind:
        case "string":
            return constant(string_value(tree.text(node)))
        case "number":
            value = number_value(tree.text(node))
            return UNKNOWN if value is None else constant(value)
        case "true" | "false":
            return constant(node.kind == "true")
        case "null" | "undefined":
            return ABSENT
        case _:
            return UNKNOWN


def composed(text: str) -> Origin:
    """Return a text composed of others, unless it is very long."""
    return constant(text) if len(text) <= MAX_COMPOSED else UNKNOWN


def negative(number: Constant) -> Origin:
    """Return a number negated by a minus sign."""
    value = number.value
    if number.type != "number" or not isinstance(value, int | float):
        return UNKNOWN
    return constant(-value)
