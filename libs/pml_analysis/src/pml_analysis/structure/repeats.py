"""Repeats pass: calls that a run certainly reaches at most once."""

from typing import Final

from pml_analysis.structure.expansion import Expansion, Instance
from pml_analysis.syntax.node_kinds import (
    CLASS_BODIES,
    FUNCTIONS,
    INLINE_FUNCTIONS,
    LOOPS,
    WRAPPERS,
)
from pml_analysis.syntax.tree import Node

_ONCE: Final = {"for_in_statement": ("right",), "for_statement": ("initializer",)}
"""By kind of loop: the parts that run before its first round."""


def repeats(expansion: Expansion, call: Node, instance: Instance) -> bool:
    """Whether a call may be reached more than once in a run; true in doubt."""
    node = call
    while not _is_repeated(node, instance):
        place, caller = instance.place, instance.caller
        if place is None or caller is None:
            return False
        if place.kind != "call_expression" or instance.number in expansion.loops:
            return True
        node, instance = place, caller
    return True


def _is_repeated(node: Node, instance: Instance) -> bool:
    """Whether a node may run again, up to the function that is entered in a known way, or to the
    program."""
    function = None if instance.unit is None else instance.unit.function
    while node is not function and node.parent is not None:
        above = node.parent
        is_loop = above.kind in LOOPS and node.field not in _ONCE.get(above.kind, ())
        is_called_elsewhere = node.kind in FUNCTIONS and not _is_invoked_in_place(node)
        if is_loop or is_called_elsewhere or node.kind in CLASS_BODIES:
            return True
        node = above
    return False


def _is_invoked_in_place(function: Node) -> bool:
    """Whether it is `(() => …)()`."""
    if function.kind not in INLINE_FUNCTIONS or function.child("name") is not None:
        return False
    value = function
    while value.above.kind in WRAPPERS:
        value = value.above
    return value.field == "function" and value.above.kind == "call_expression"
