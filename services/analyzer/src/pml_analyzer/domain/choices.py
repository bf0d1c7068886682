"""Expressions whose value is that of one of their operands."""

from typing import Final

from pml_analyzer.syntax.tree import Node

_CHOOSING: Final = frozenset({"&&", "||", "??", "&&=", "||=", "??="})
_EITHER_SIDE: Final = ("left", "right")
_ARMS: Final[dict[str, tuple[str, ...]]] = {
    "assignment_expression": ("right",),
    "augmented_assignment_expression": _EITHER_SIDE,
    "binary_expression": _EITHER_SIDE,
    "ternary_expression": ("consequence", "alternative"),
}


def choices(node: Node) -> list[Node]:
    """The expressions one of which is the value of a choosing expression; none if it is none."""
    found: list[Node] = []
    waiting = arms(node)
    while waiting:
        arm = waiting.pop().inner
        inner_arms = arms(arm)
        waiting.extend(inner_arms)
        if not inner_arms:
            found.append(arm)
    return found


def arms(node: Node) -> list[Node]:
    """The operands one of which a choosing expression has as its value; none if it is none."""
    places = _ARMS.get(node.kind, ())
    if node.kind == "sequence_expression":
        return node.children[-1:]
    if places == _EITHER_SIDE and node["operator"].kind not in _CHOOSING:
        return []
    return [child for child in node.children if child.field in places]


def condition_of(node: Node) -> Node:
    """The condition of an if or a conditional expression, without the parentheses of the if."""
    condition = node["condition"]
    inside = condition.operand if condition.kind == "parenthesized_expression" else None
    return inside or condition
