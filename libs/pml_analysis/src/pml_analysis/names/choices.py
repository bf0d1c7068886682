"""Choices: expressions whose value is that of one of their operands."""

import re
from typing import Final

from pml_analysis.syntax.literals import string_value
from pml_analysis.syntax.tree import Node, Tree

_CHOOSING: Final = frozenset({"&&", "||", "??", "&&=", "||=", "??="})
_EITHER_SIDE: Final = ("left", "right")
_ARMS: Final[dict[str, tuple[str, ...]]] = {
    "assignment_expression": ("right",),
    "augmented_assignment_expression": _EITHER_SIDE,
    "binary_expression": _EITHER_SIDE,
    "ternary_expression": ("consequence", "alternative"),
}

_SPACES: Final = re.compile(r"\s+")
_MAX_LABEL: Final = 60


def choices(node: Node) -> list[Node]:
    """Return the possible result expressions of a choosing expression; none if it is none."""
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
    """Return the operands of a choosing expression that may be its value; none if it is none."""
    places = _ARMS.get(node.kind, ())
    if node.kind == "sequence_expression":
        return node.children[-1:]
    if places == _EITHER_SIDE and node["operator"].kind not in _CHOOSING:
        return []
    return [child for child in node.children if child.field in places]


def condition_of(node: Node) -> Node:
    """Return the condition of an if or a conditional expression, without the parentheses of the
    if."""
    condition = node["condition"]
    inside = condition.operand if condition.kind == "parenthesized_expression" else None
    return inside or condition


def is_plain(node: Node) -> bool:
    """Whether it is a name, or members of one under fixed keys: reading it twice has no effect but
    through getters."""
    node = node.inner
    while node.kind == "member_expression":
        node = node["object"].inner
    return node.kind == "identifier"


def case_outcome(tree: Tree, clause: Node) -> str:
    """Name the outcome of a clause of a switch: `case:open`, `default`."""
    value = clause.child("value")
    if value is None:
        return "default"
    text = tree.text(value)
    label = string_value(text) if value.kind == "string" else _SPACES.sub(" ", text)
    return f"case:{label[:_MAX_LABEL]}"
