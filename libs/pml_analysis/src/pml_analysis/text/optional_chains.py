"""Optional chains where JavaScript has none: before a template, after new, as an assignment
target."""

from collections.abc import Iterator

from pml_analysis.syntax.node_kinds import ASSIGNED_FIELD, CHAIN_LINKS
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.problems import Problem


def misplaced_chains(tree: Tree) -> Iterator[Problem]:
    """Return every such chain, by its start; for a template, by the template's."""
    if "?." not in tree.source.text:
        return
    for template in tree.of("template_string"):
        if template.field == "arguments" and _is_optional(template.above["function"]):
            message = (
                "A template cannot follow ?. in a chain: put what is before it in parentheses."
            )
            yield Problem(template.start, message)
    for new in tree.of("new_expression"):
        made = new["constructor"]
        if _is_optional(made) or made.kind == "call_expression":  # of `new f?.()` only
            yield Problem(made.start, "new cannot make what ?. may leave out: ask before it.")
    for node in tree.of(*ASSIGNED_FIELD):
        written = node[ASSIGNED_FIELD[node.kind]]
        if _is_optional(written):
            message = "What ?. leads to cannot be written: ask whether it is there first."
            yield Problem(written.start, message)


def _is_optional(end: Node) -> bool:
    """Whether a chain with that end may stop before it."""
    node = end
    while node.kind in CHAIN_LINKS:
        if node.child("optional_chain") is not None:
            return True
        node = node.children[0]
    return False
