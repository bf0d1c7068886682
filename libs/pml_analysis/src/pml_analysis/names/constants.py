"""Constants written out in the program, as JSON."""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from pml_analysis.names.entries import entries
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import Constant
from pml_analysis.syntax.literals import is_unicode
from pml_analysis.syntax.tree import Node

_MAX_DEPTH: Final = 30
_ASKING: Final = frozenset({"has", "includes", "indexOf", "join", "length", "size"})


def json_value(origins: Origins, node: Node, levels: int = _MAX_DEPTH) -> JsonValue:
    """Return the value of an expression; None where it is null, not fully known statically, or no
    JSON."""
    node = node.inner
    if levels and node.kind == "array":
        items = [json_value(origins, item, levels - 1) for item in node.children[::2]]
        is_plain = all(child.kind == "," for child in node.children[1::2])
        return items if is_plain and not any(item is None for item in items) else None
    if levels and node.kind == "object":
        fields = {
            entry.key: json_value(origins, entry.value, levels - 1)
            for entry in entries(origins, node)
        }
        known = {key: value for key, value in fields.items() if key is not None}
        return None if None in fields or None in fields.values() else {**known}
    found = origins.of(node)
    value = found.value if isinstance(found, Constant) else None
    return None if isinstance(value, str) and not is_unicode(value) else value


def listed_values(origins: Origins, node: Node) -> Sequence[JsonValue] | None:
    """Return the values in `["a", "b"]` or `new Set(["a", "b"])`, or of a name that is only ever
    that."""
    binding = origins.scopes.binding(node.inner)
    if binding is not None:
        is_fixed = binding.kind == "const" and len(binding.parts) == 1
        value = binding.parts[0].value if is_fixed and not binding.parts[0].path else None
        is_only_read = all(_is_lookup(origins, use) for use in binding.uses)
        return _listed(origins, value) if value is not None and is_only_read else None
    return _listed(origins, node)


def _is_lookup(origins: Origins, use: Node) -> bool:
    """Whether a use of a list only looks values up in it."""
    name = use.above.child("property")
    return name is not None and use.field == "object" and origins.tree.name(name) in _ASKING


def _listed(origins: Origins, node: Node) -> Sequence[JsonValue] | None:
    node = node.inner
    if node.kind == "new_expression" and origins.tree.text(node["constructor"]) == "Set":
        given = node.child("arguments")
        node = given.children[0] if given is not None and len(given.children) == 1 else node
    value = json_value(origins, node) if node.kind == "array" else None
    return value if isinstance(value, list) else None
