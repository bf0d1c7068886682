"""The entries of an object literal, spreads opened where that is possible."""

from collections.abc import Iterator
from dataclasses import dataclass

from pml_analyzer.domain.origins import Origins
from pml_analyzer.domain.values import Constant, as_key
from pml_analyzer.syntax.literals import string_value
from pml_analyzer.syntax.tree import Node


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. Without a key its keys are known to the run only: a spread, a computed key."""

    key: str | None
    value: Node
    is_spread: bool = False


def entries(origins: Origins, node: Node) -> Iterator[Entry]:
    """The entries of an object literal in source order; of any other value, one spread of it."""
    waiting = [node]
    while waiting:
        found = waiting.pop().inner
        if found.kind == "object":
            waiting.extend(reversed(found.children))
        elif found.kind == "spread_element" and found.operand is not None:
            waiting.append(found.operand)
        elif found.kind == "shorthand_property_identifier":
            yield Entry(origins.tree.name(found), found)
        elif found.kind == "pair":
            key, value = found.children
            yield Entry(_key(origins, key), value)
        elif found.kind == "method_definition":
            yield Entry(_key(origins, found["name"]), found)
        else:
            yield Entry(None, found, is_spread=True)


def _key(origins: Origins, key: Node) -> str | None:
    tree = origins.tree
    if key.kind == "computed_property_name":
        found = origins.of(key.children[0])
    else:
        text = tree.text(key)
        return string_value(text) if key.kind == "string" else tree.name(key)
    step = as_key(found.value) if isinstance(found, Constant) else None
    return None if step is None else str(step)
