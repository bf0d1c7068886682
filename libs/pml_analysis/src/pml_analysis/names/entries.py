"""Entries of object literals, with spreads expanded where possible."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pml_analysis.names.bindings import Binding
from pml_analysis.names.folding import literal
from pml_analysis.names.origins import Origins
from pml_analysis.names.tampering import is_tampered
from pml_analysis.names.values import CallByName, Constant, FromTools, as_key
from pml_analysis.syntax.literals import integer_text, string_value
from pml_analysis.syntax.node_kinds import MEMBERS, WRAPPERS
from pml_analysis.syntax.tree import Node

_MAX_OPENED: Final = 50


class Entry(NamedTuple):
    """One entry. Without a key its keys are known only at run time: those of a spread, or the value
    of `computed`."""

    key: str | None
    value: Node
    computed: Node | None = None


def entries(origins: Origins, node: Node) -> Iterator[Entry]:
    """Return the entries of an object literal, or of the one that a name holds, in source order;
    for any other value, one spread of it."""
    waiting = [node]
    while waiting:
        found = waiting.pop().inner
        literal = known_object(origins, found)
        if is_plain(found):
            waiting.extend(reversed(found.children))
        elif literal is not None:
            waiting.append(literal)
        elif found.kind == "spread_element" and found.operand is not None:
            waiting.append(found.operand)
        elif found.kind == "shorthand_property_identifier":
            yield Entry(origins.tree.name(found), found)
        elif found.kind == "pair":
            key, value = found.children
            name = _key(origins, key)
            yield Entry(name, value, key if name is None else None)
        elif found.kind == "method_definition":
            yield Entry(_key(origins, found["name"]), found, found["name"])
        else:
            yield Entry(None, found)


def known_object(origins: Origins, node: Node) -> Node | None:
    """Return the object literal that a name certainly holds: assigned once, never changed. Limited
    to small ones without spreads, so that repeated expansion stays cheap."""
    binding = origins.scopes.binding(node) if node.kind == "identifier" else None
    if binding is None:
        return None
    at = binding.node.index
    if at not in origins.known_objects:
        origins.known_objects[at] = _find_known_object(origins, binding)
    return origins.known_objects[at]


def _find_known_object(origins: Origins, binding: Binding) -> Node | None:
    if len(binding.parts) != 1 or binding.starts_absent:
        return None
    (part,) = binding.parts
    literal = part.value.inner if part.value is not None and not part.path else None
    if literal is None or literal.kind != "object" or part.is_default:
        return None
    is_small = len(literal.children) <= _MAX_OPENED
    if not is_small or any(child.kind == "spread_element" for child in literal.children):
        return None
    return literal if is_never_changed(origins, binding, literal) else None


def is_plain(node: Node) -> bool:
    """Whether a node is an object literal that runs nothing when it is read: a getter could change
    the rest."""
    return node.kind == "object" and not any(map(is_accessor, node.children))


def is_plain_list(array: Node) -> bool:
    """Whether a list literal has exactly the elements written there: no holes, no spreads."""
    after_comma = True
    for child in array.children:
        if child.kind == "spread_element" or (child.kind == "," and after_comma):
            return False
        after_comma = child.kind == ","
    return True


def is_accessor(node: Node) -> bool:
    """Whether an entry of an object or class is a getter or setter."""
    return node.kind == "method_definition" and any(
        child.kind in ("get", "set") for child in node.children
    )


def is_never_changed(origins: Origins, binding: Binding, literal: Node) -> bool:
    """Whether the object or list literal that a name holds is never changed. Its inner values could
    be changed under another name, once they are read."""
    if is_tampered(origins) or (literal.kind == "object" and not is_plain(literal)):
        return False
    is_flat = literal.kind == "object" and not any(map(_holds_changeable, literal.children))
    return all(
        _is_given_to_tool(origins, use) or (is_flat and _only_reads(origins, use))
        for use in binding.uses
    )


def _holds_changeable(child: Node) -> bool:
    value = child.children[-1] if child.kind == "pair" else child
    return value.inner.kind in ("array", "object", "spread_element")


def _only_reads(origins: Origins, use: Node) -> bool:
    """Whether a use reads parts of an object, or copies it."""
    above = use.above
    if above.kind not in MEMBERS or above.operand is not use:
        return above.kind == "spread_element"
    whole = above
    while whole.above.kind in WRAPPERS:
        whole = whole.above
    is_read = whole.field != "function" and above.index not in origins.changed_members
    is_deleted = whole.above.kind == "unary_expression" and whole.above["operator"].kind == "delete"
    return is_read and not is_deleted


def _is_given_to_tool(origins: Origins, use: Node) -> bool:
    """Whether a tool gets the object, or a value that contains it: it gets a copy."""
    above = use.above
    if above.kind in ("spread_element", "pair") or use.kind == "shorthand_property_identifier":
        whole = above if above.kind == "object" else above.above
        above = whole.above
    if above.kind != "arguments" or above.above.kind != "call_expression":
        return False
    return isinstance(origins.of(above.above["function"]), FromTools | CallByName)


def _key(origins: Origins, key: Node) -> str | None:
    tree = origins.tree
    if key.kind == "computed_property_name":
        found = origins.of(key.children[0])
    elif key.kind == "number":  # 0x1 is "1", and so is 1n
        text = tree.text(key)
        if text.endswith("n"):
            return integer_text(text)
        found = literal(tree, key)
    else:
        text = tree.text(key)
        return string_value(text) if key.kind == "string" else tree.name(key)
    step = as_key(found.value) if isinstance(found, Constant) else None
    return None if step is None else str(step)
