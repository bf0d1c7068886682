"""Escapes pass: tools used as values where later calls cannot be traced back to them."""

from collections.abc import Iterable, Iterator

from pml_analysis.names.choices import arms
from pml_analysis.names.origins import CHAIN, Origins
from pml_analysis.names.values import either, holds_tools
from pml_analysis.structure.calls import Calls
from pml_analysis.structure.listings import Listing
from pml_analysis.syntax.node_kinds import CONDITIONALS, DISCARDING
from pml_analysis.syntax.tree import Node

_FOLLOWED = frozenset(
    {
        ("assignment_pattern", "right"),
        ("call_expression", "function"),
        ("for_in_statement", "right"),
        ("object_assignment_pattern", "right"),
        ("optional_parameter", "value"),
        ("required_parameter", "value"),
        ("variable_declarator", "value"),
    }
)
"""Positions whose value other passes follow: names, and callees."""

_HARMLESS = frozenset(
    {
        *((kind, "condition") for kind in CONDITIONALS),
        ("for_statement", "condition"),
        ("subscript_expression", "index"),
    }
)
"""Positions that only test the value, or make a text of it."""

_FORWARDING = frozenset({"delete", "instanceof"})
"""Operators that pass the value on: the result may be tested in turn."""


def add_escapes(calls: Calls, origins: Origins, listings: Iterable[Listing] = ()) -> None:
    """Add to the dynamic calls every value that contains tools and goes where nothing follows it;
    of `listings` only names are read."""
    escaped = {node.index: node for node in _escapes(origins)}
    for listing in listings:
        escaped.pop(listing.node.index, None)
    calls.dynamic.extend(escaped.values())
    calls.dynamic.sort(key=lambda node: node.start)


def _escapes(origins: Origins) -> Iterator[Node]:
    for use in _uses(origins):
        value = _carrier(use)
        if not _is_followed(value):
            yield value
    for target in origins.scopes.member_writes:
        if holds_tools(either(map(origins.part, target.parts))):
            yield target.node


def _uses(origins: Origins) -> Iterator[Node]:
    """Yield every read of an identifier whose value may contain tools."""
    scopes = origins.scopes
    for node in scopes.free:
        if origins.tree.name(node) in ("mcp", "capabilities"):
            yield node
    for binding in scopes.bindings:
        if holds_tools(origins.binding(binding)):
            yield from (use for use in binding.uses if use.index not in scopes.written)


def _carrier(node: Node) -> Node:
    """Return the widest expression whose value is that of `node`, or a part of it."""
    above = node.above
    while (above.kind in CHAIN and above.operand is node) or node in arms(above):
        node, above = above, above.above
    return node


def _is_followed(value: Node) -> bool:
    above = value.above
    place = (above.kind, value.field or "")
    if place in _FOLLOWED or place in _HARMLESS or above.kind in DISCARDING:
        return True
    if above.kind == "template_substitution":
        return above.above.field != "arguments"  # a tag gets the values themselves
    if above.kind in ("unary_expression", "binary_expression"):
        return above["operator"].kind not in _FORWARDING
    return False
