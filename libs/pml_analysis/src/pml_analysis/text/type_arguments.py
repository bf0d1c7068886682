"""Type arguments pass: calls that the grammar reads in another way than the transpiler.

The grammar binds operators before type arguments, `!f<T>(a)` as `(!f)<T>(a)`, and takes the
brackets for comparisons where a text or a regular expression follows, or a call after a cast: what
is called is not what it says, and the regular expression is code.
"""

from collections.abc import Iterator
from typing import Final

from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.problems import Problem

_LINKS: Final = frozenset(
    {
        "await_expression",
        "call_expression",
        "instantiation_expression",
        "member_expression",
        "non_null_expression",
        "subscript_expression",
    }
)
"""Kinds whose first part may be the expression that the grammar has taken whole."""

_OPERATIONS: Final = frozenset(
    {
        "as_expression",
        "binary_expression",
        "satisfies_expression",
        "type_assertion",
        "unary_expression",
        "update_expression",
    }
)
_BRACKETS: Final = frozenset({"<", ">", ">>", ">>>"})
_NOT_IN_TYPES: Final = frozenset({"&&", "||", "??"})
_AROUND: Final = frozenset({"arrow_function", "type_assertion"})
"""Kinds, beside those of expressions, whose last part may be a comparison."""


def misread_type_arguments(tree: Tree) -> Iterator[Problem]:
    """Return each call with type arguments after an operator, and each comparison that may be
    one."""
    for call in tree.of("call_expression"):
        if call.child("type_arguments") is not None and _is_operation(call["function"]):
            message = "A call with type arguments is ambiguous here: put it in parentheses."
            yield Problem(call.start, message)
    comparisons = [
        (node, node["operator"])
        for node in tree.of("binary_expression")
        if node["operator"].kind in _BRACKETS
    ]
    opened = sorted(
        (sign.start, _end_of_brackets(node)) for node, sign in comparisons if sign.kind == "<"
    )
    for node, sign in comparisons:
        follows = tree.source.text[node["right"].start]
        # Texts and regular expressions are compared by nobody.
        if sign.kind != "<" and (
            follows in "/`" or (follows == "(" and _is_opened(opened, node, sign.start))
        ):
            message = "What follows > is ambiguous here: put the comparison's sides in parentheses."
            yield Problem(node["right"].start, message)


def _is_operation(callee: Node) -> bool:
    while callee.kind in _LINKS:
        callee = callee.children[0]
    return callee.kind in _OPERATIONS


def _is_opened(opened: list[tuple[int, int]], comparison: Node, until: int) -> bool:
    """Whether a `<` (its place and the end of the brackets around it, in `opened`) is before a `>`
    where type arguments could begin: in the same brackets or statement, and after the last operator
    that no type contains."""
    node, above = comparison, comparison.above
    while _is_expression(above):
        is_right = above.kind == "binary_expression" and above["right"] is node
        if above.kind == "parenthesized_expression" or (
            is_right and above["operator"].kind in _NOT_IN_TYPES
        ):
            break
        node, above = above, above.above
    since = above["operator"].start if above.kind == "binary_expression" else above.start
    return any(since <= start < until < end for start, end in opened)


def _end_of_brackets(node: Node) -> int:
    """Return the end of the brackets or the statement around an expression."""
    above = node.above
    while _is_expression(above) and above.kind != "parenthesized_expression":
        above = above.above
    return above.end


def _is_expression(node: Node) -> bool:
    return node.kind in _AROUND or node.kind.endswith("_expression")
