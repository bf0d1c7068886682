"""Hoisting: a `var` exists before it is assigned."""

from pml_analysis.names.bindings import Binding
from pml_analysis.syntax.node_kinds import FUNCTIONS
from pml_analysis.syntax.tree import Node


def may_be_unset(declarator: Node, binding: Binding) -> bool:
    """Whether a `var` may be read before it is assigned, or may never be."""
    block = declarator.above.above
    is_nested = block.parent is not None and block.above.kind not in FUNCTIONS
    return is_nested or any(_precedes(use, declarator, block) for use in binding.uses)


def _precedes(use: Node, declarator: Node, block: Node) -> bool:
    """Whether a use precedes the assignment, or is in a function that can be called before it."""
    if use.index < declarator.stop:
        return True
    above = use.above
    while above is not block and above.parent is not None:
        if above.kind.endswith("function_declaration"):
            return True
        above = above.above
    return False
