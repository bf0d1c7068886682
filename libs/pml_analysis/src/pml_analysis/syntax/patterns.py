"""Destructuring: the names that a pattern binds, and the parts of values that they get."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pml_analysis.syntax.literals import string_value
from pml_analysis.syntax.tree import Node, Tree

Step = str | int | None
"""One step into a value: a key, an index, or None for one known only at run time."""

Path = tuple[Step, ...]


class Part(NamedTuple):
    """A part of the value of an expression; without an expression, of an unknown value."""

    value: Node | None
    path: Path = ()
    is_default: bool = False


class Target(NamedTuple):
    """One name or member that a pattern writes, and every value it may get."""

    node: Node
    parts: tuple[Part, ...]


def targets(tree: Tree, pattern: Node, parts: tuple[Part, ...]) -> Iterator[Target]:
    """Yield the targets of a pattern, in source order, when the whole of it gets one of `parts`."""
    waiting = [(pattern, parts)]
    while waiting:
        node, values = waiting.pop()
        node = node.inner
        inside = _INSIDE.get(node.kind)
        if inside is None:
            yield Target(node, values)
        else:
            waiting.extend(reversed(list(inside(tree, node, values))))


_Found = Iterator[tuple[Node, tuple[Part, ...]]]


def _object(tree: Tree, node: Node, parts: tuple[Part, ...]) -> _Found:
    for child in node.children:
        match child.kind:
            case "shorthand_property_identifier_pattern":
                yield child, _step(parts, tree.name(child))
            case "object_assignment_pattern":
                name, default = child.children
                yield name, (*_step(parts, key_of(tree, name)), Part(default, is_default=True))
            case "pair_pattern":
                key, target = child.children
                yield target, _step(parts, key_of(tree, key))
            case _:  # a rest pattern: the value itself, less some keys
                yield child, parts


def _array(_: Tree, node: Node, parts: tuple[Part, ...]) -> _Found:
    index = 0
    for child in node.children:
        if child.kind == ",":
            index += 1
        else:
            yield child, _step(parts, None if child.kind == "rest_pattern" else index)


def _with_default(_: Tree, node: Node, parts: tuple[Part, ...]) -> _Found:
    target, default = node.children
    yield target, (*parts, Part(default, is_default=True))


def _rest(_: Tree, node: Node, parts: tuple[Part, ...]) -> _Found:
    yield node.children[0], parts


_INSIDE: dict[str, Callable[[Tree, Node, tuple[Part, ...]], _Found]] = {
    "object_pattern": _object,
    "array_pattern": _array,
    "assignment_pattern": _with_default,
    "rest_pattern": _rest,
}


def _step(parts: tuple[Part, ...], step: Step) -> tuple[Part, ...]:
    return tuple(Part(part.value, (*part.path, step), part.is_default) for part in parts)


def key_of(tree: Tree, key: Node) -> Step:
    """Return the key of a property name; None when it is known only at run time."""
    if key.kind == "computed_property_name":
        key = key.children[0].inner
        return string_value(tree.text(key)) if key.kind == "string" else None
    match key.kind:
        case (
            "property_identifier"
            | "shorthand_property_identifier"
            | "shorthand_property_identifier_pattern"
        ):
            return tree.name(key)
        case "string":
            return string_value(tree.text(key))
        case _:
            return None
