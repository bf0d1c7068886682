"""The entries of an object literal, spreads opened where that is possible."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pml_analyzer.domain.bindings import Binding
from pml_analyzer.domain.origins import MEMBERS, Origins
from pml_analyzer.domain.values import CallByName, Constant, FromTools, as_key
from pml_analyzer.syntax.literals import string_value
from pml_analyzer.syntax.tree import Node

_MOST_OPENED: Final = 50


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. Without a key its keys are known to the run only: those of a spread, or the value
    of `computed`."""

    key: str | None
    value: Node
    computed: Node | None = None


def entries(origins: Origins, node: Node) -> Iterator[Entry]:
    """The entries of an object literal, or of the one that a name holds, in source order; of any
    other value, one spread of it."""
    waiting = [node]
    while waiting:
        found = waiting.pop().inner
        held = held_object(origins, found)
        if found.kind == "object":
            waiting.extend(reversed(found.children))
        elif held is not None:
            waiting.append(held)
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


def held_object(origins: Origins, node: Node) -> Node | None:
    """The object literal that a name certainly holds: nothing else is assigned, and nobody may have
    changed it. Small ones without spreads only, so that opening them again and again stays cheap.
    """
    binding = origins.scopes.binding(node) if node.kind == "identifier" else None
    if binding is None:
        return None
    at = binding.node.index
    if at not in origins.held_objects:
        origins.held_objects[at] = _held(origins, binding)
    return origins.held_objects[at]


def _held(origins: Origins, binding: Binding) -> Node | None:
    if len(binding.parts) != 1 or binding.starts_absent:
        return None
    (part,) = binding.parts
    held = part.value.inner if part.value is not None and not part.path else None
    if held is None or held.kind != "object" or part.is_default:
        return None
    is_small = len(held.children) <= _MOST_OPENED
    if not is_small or any(child.kind == "spread_element" for child in held.children):
        return None
    return held if all(_only_reads(origins, use) for use in binding.uses) else None


def _only_reads(origins: Origins, use: Node) -> bool:
    """Whether a use reads parts of an object, copies it, or hands it to a tool."""
    above = use.above
    if above.kind in MEMBERS and above.operand is use:
        is_called = above.field == "function"
        return not is_called and above.index not in origins.changed_members
    if above.kind == "arguments" and above.above.kind == "call_expression":
        return isinstance(origins.of(above.above["function"]), FromTools | CallByName)
    return above.kind == "spread_element"


def _key(origins: Origins, key: Node) -> str | None:
    tree = origins.tree
    if key.kind == "computed_property_name":
        found = origins.of(key.children[0])
    else:
        text = tree.text(key)
        return string_value(text) if key.kind == "string" else tree.name(key)
    step = as_key(found.value) if isinstance(found, Constant) else None
    return None if step is None else str(step)
