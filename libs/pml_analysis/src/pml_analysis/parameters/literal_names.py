"""Names for literals, after the places in the program that take them."""

from collections.abc import Sequence
from typing import Final

from pml_analysis.names.origins import Origins
from pml_analysis.structure.units import Unit
from pml_analysis.syntax.literals import string_value
from pml_analysis.syntax.node_kinds import MEMBERS, WRAPPERS
from pml_analysis.syntax.tree import Node

UNKNOWN: Final = "value"

_NAMED_BY: Final = {
    "assignment_expression": "left",
    "assignment_pattern": "left",
    "object_assignment_pattern": "left",
    "pair": "key",
    "public_field_definition": "name",
    "required_parameter": "pattern",
    "optional_parameter": "pattern",
    "variable_declarator": "name",
}
"""By construct: the field that names its value."""
_COMPARISONS: Final = frozenset({"!=", "!==", "<", "<=", "==", "===", ">", ">="})


def name_of(origins: Origins, units: Sequence[Unit], literal: Node) -> str:
    """Return the name of the property, variable or parameter that takes a literal, of the value it
    is compared with, or of the function it is passed to; `value` for any other."""
    node = literal
    while node.above.kind in WRAPPERS:
        node = node.above
    above = node.above
    named: Node | None = None
    if above.kind in _NAMED_BY:
        named = above.child(_NAMED_BY[above.kind])
    elif above.kind == "arguments":
        named = _parameter(units, node) or above.above.child("function")
    elif above.kind == "binary_expression" and _compares(origins, above):
        named = above["left" if node.field == "right" else "right"]
    elif above.kind == "switch_case":
        named = above.above.above["value"]
    return (_last_name(origins, named) if named is not None else None) or UNKNOWN


def _compares(origins: Origins, node: Node) -> bool:
    return origins.tree.text(node["operator"]) in _COMPARISONS


def _parameter(units: Sequence[Unit], argument: Node) -> Node | None:
    """Return the parameter of a local function that takes an argument by position."""
    call = argument.above.above
    function = next((unit.function for unit in units if call in unit.entries), None)
    if function is None:
        return None
    alone = function.child("parameter")
    patterns = [alone] if alone is not None else function["parameters"].children
    at = argument.above.children.index(argument)
    found = patterns[at] if at < len(patterns) else None
    return found.child("pattern") if found is not None and found.children else found


def _last_name(origins: Origins, node: Node) -> str | None:
    """Return the name at the end of `a.b`, `a["b"]`, `a` or a key; None where there is none."""
    node = node.inner
    if node.kind in MEMBERS:
        key = origins.key(node)
        return key if isinstance(key, str) else None
    if node.kind == "string":
        return string_value(origins.tree.text(node)) or None
    return origins.tree.name(node) if "identifier" in node.kind else None
