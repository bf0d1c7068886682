"""Early errors pass: what the grammar lets through and JavaScript does not, where later passes
would take it for something else. All other early errors are the runtime's to tell."""

from collections.abc import Iterator
from typing import Final

from pml_analyzer.domain.problems import Problem
from pml_analyzer.syntax.tree import Node, Tree

_NAMES: Final = (
    "identifier",
    "private_property_identifier",
    "property_identifier",
    "shorthand_property_identifier",
    "shorthand_property_identifier_pattern",
    "statement_identifier",
    "type_identifier",
)
_CHAINED: Final = frozenset(
    {"call_expression", "member_expression", "non_null_expression", "subscript_expression"}
)
_ALSO_IN_NAMES: Final = str.maketrans("$\u200c\u200d", "___")
"""What JavaScript allows in a name and Python does not; `_` stands for it."""


def early_errors(tree: Tree) -> Iterator[Problem]:
    """Each with its place."""
    if "\\" in tree.source.text:
        yield from _escaped_names(tree)
    for template in tree.of("template_string"):
        if template.field == "arguments" and _is_optional(template.above["function"]):
            message = (
                "A template cannot follow ?. in a chain: put what is before it in parentheses."
            )
            yield Problem(template.start, message)


def _escaped_names(tree: Tree) -> Iterator[Problem]:
    for node in tree.of(*_NAMES):
        text = tree.text(node)
        name = tree.name(node).removeprefix("#").translate(_ALSO_IN_NAMES)
        if "\\" in text and not name.isidentifier():
            yield Problem(node.start, f"{text} is no name: it stands for what no name may hold.")


def _is_optional(callee: Node) -> bool:
    """Whether an optional chain leads to a callee."""
    node = callee
    while node.kind in _CHAINED:
        if node.child("optional_chain") is not None:
            return True
        node = node.children[0]
    return False
