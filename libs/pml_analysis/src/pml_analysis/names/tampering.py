"""Tampering pass: whether a program may put functions of its own into objects that it did not make.

Visible ways to prototypes are refused (see rules/prototypes.py). A prototype reached in an
invisible way, `[Object.getPrototypeOf][0]({})`, that gets a function runs it wherever a value is
merely read: it may change the value, so no literal is certain to keep its value.
"""

from collections.abc import Iterator
from typing import Final

from pml_analysis.names.origins import Origins
from pml_analysis.names.values import FromArguments, holds_tools
from pml_analysis.syntax.node_kinds import CONTAINERS, FUNCTIONS, MEMBERS
from pml_analysis.syntax.patterns import Part
from pml_analysis.syntax.tree import Node

_DEFINING: Final = frozenset({"assign", "defineProperties", "defineProperty"})
_FRESH: Final = CONTAINERS | FUNCTIONS | {"class", "class_declaration", "new_expression"}


def is_tampered(origins: Origins) -> bool:
    """Whether reading a value may change it."""
    if origins.is_tampered is None:
        origins.is_tampered = any(not _is_own(origins, node) for node in _owners(origins))
    return origins.is_tampered


def _owners(origins: Origins) -> Iterator[Node | None]:
    """Yield the objects that get functions, or may; None for an unknown one."""
    tree = origins.tree
    for target in origins.scopes.member_writes:
        if target.node.kind in MEMBERS and any(_may_be_function(origins, p) for p in target.parts):
            yield target.node.children[0]
    for member in tree.of(*MEMBERS):
        if origins.key(member) in _DEFINING and not _is_own(origins, member.children[0]):
            call = member.above
            is_called = call.kind == "call_expression" and member.field == "function"
            given = call["arguments"].children if is_called else []
            yield given[0] if given and given[0].kind != "spread_element" else None
    for binding in origins.scopes.bindings:
        if any(not _DEFINING.isdisjoint(part.path) for part in binding.parts):
            yield None


def _may_be_function(origins: Origins, part: Part) -> bool:
    """Whether the written value may be a function."""
    value = part.value.inner if part.value is not None else None
    binding = origins.scopes.binding(value) if value is not None else None
    values = [value] if binding is None else [one.value for one in binding.parts]
    return any(one is not None and one.inner.kind in FUNCTIONS for one in values)


def _is_own(origins: Origins, node: Node | None) -> bool:
    """Whether an object is made here, or came from outside as data."""
    if node is None:
        return False
    node = node.inner
    binding = origins.scopes.binding(node)
    if binding is not None and binding.kind in ("class", "function"):
        return len(binding.parts) == 1
    parts = [Part(node)] if binding is None else binding.parts
    return all(_is_made(origins, part) for part in parts)


def _is_made(origins: Origins, part: Part) -> bool:
    if part.value is None:
        return False
    origin = origins.part(part)
    if isinstance(origin, FromArguments):
        return True
    value = part.value.inner
    while value.kind == "await_expression" and value.operand is not None:
        value = value.operand.inner
    if value.kind == "call_expression" and holds_tools(origins.of(value["function"])):
        return True
    return not part.path and value.kind in _FRESH
