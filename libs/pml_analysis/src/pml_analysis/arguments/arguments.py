"""Arguments pass (A6): what is known, before the run, of what each call is given."""

import re
from collections.abc import Mapping
from typing import Final, cast

from pydantic import JsonValue

from pml_analysis.arguments.changes import changed_arguments, may_be
from pml_analysis.arguments.data_flow import DataFlow
from pml_analysis.arguments.handed_in import Given, HandedIn
from pml_analysis.names.constants import json_value
from pml_analysis.names.entries import Entry, entries, is_plain
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import Constant, FromArguments, Origin
from pml_analysis.structure.expansion import Instance
from pml_analysis.syntax.literals import is_unicode
from pml_analysis.syntax.patterns import Part, Path
from pml_analysis.syntax.tree import Node
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
)

SPREAD: Final = "..."
"""Begins the key of what is given as a whole: `f(options)` is `f({...options})`."""

_LONGEST_EXPRESSION: Final = 200
_LOOKED_AT: Final = 10 * _LONGEST_EXPRESSION
_DEEPEST: Final = 30
"""How many objects and lists inside each other are told apart."""

_SPACES: Final = re.compile(r"\s+")
_MOST_NAMES: Final = 10
_DEFAULTING: Final = frozenset({"??", "||"})


_LEAST: Final = 8
"""Characters that an argument counts for at least."""


class TooMuchGiven(Exception):
    """The arguments of all calls together are more than a structure should hold; with the offset of
    the first that are too much."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"too much is given at offset {offset}")
        self.offset = offset


class ArgumentReader:
    """Reads the arguments of calls, in one instance of the function that the call stands in.
    Raises TooMuchGiven beyond `limit` characters of all that it has read."""

    def __init__(
        self, origins: Origins, flow: DataFlow, handed_in: HandedIn, *, limit: int
    ) -> None:
        self._left = limit
        self._call = 0
        self._tree = origins.tree
        self._origins = origins
        self._flow = flow
        self._handed_in = handed_in
        self._changed = changed_arguments(origins)

    def read(self, given: Node | None, at: Instance) -> dict[str, Argument]:
        """The arguments of a call by name."""
        if given is None:
            return {}
        self._call = given.start
        return self._fields(given, at, 0)

    def _count(self, size: int) -> None:
        self._left -= max(size, _LEAST)
        if self._left < 0:
            raise TooMuchGiven(self._call)

    def _value(self, node: Node, at: Instance, depth: int) -> Argument:
        node = node.inner
        if depth < _DEEPEST and is_plain(node):
            fields = self._fields(node, at, depth + 1)
            values = {key: field.value for key, field in _literals(fields)}
            whole = len(values) == len(fields)
            return LiteralArgument(value=values) if whole else ObjectArgument(fields=fields)
        if depth < _DEEPEST and node.kind == "array" and not _has_holes(node):
            return self._array(node, at, depth + 1)
        return self._scalar(node, at, depth)

    def _fields(self, node: Node, at: Instance, depth: int) -> dict[str, Argument]:
        given = self._handed_in.follow(node, at)
        if given is not None and not given.path:
            node, at = given.value, given.at
        found = list(entries(self._origins, node))
        # What stands before a spread or a computed key may be overwritten by it.
        certain_from = max((i for i, entry in enumerate(found) if entry.key is None), default=0)
        return {
            self._key(entry): self._value(entry.value, at, depth)
            if i >= certain_from
            else self._reference(entry.value, at)
            for i, entry in enumerate(found)
        }

    def _key(self, entry: Entry) -> str:
        key = entry.key
        if key is None:
            is_spread = entry.computed is None
            text = self.expression(entry.computed or entry.value)
            key = f"{SPREAD}{text}" if is_spread else text
        self._count(len(key))
        return key

    def _array(self, node: Node, at: Instance, depth: int) -> Argument:
        items: list[Argument] = []
        for child in node.children:
            if child.kind == "spread_element":
                items.append(self._reference(child, at))
            elif child.kind != ",":
                items.append(self._value(child, at, depth))
        values = [item.value for item in items if isinstance(item, LiteralArgument)]
        whole = len(values) == len(items)
        return LiteralArgument(value=values) if whole else ArrayArgument(items=tuple(items))

    def _scalar(self, node: Node, at: Instance, depth: int) -> Argument:
        given = self._handed_in.follow(node, at)
        if given is not None and not given.path and depth < _DEEPEST:
            return self._value(given.value, given.at, depth + 1)
        origin = self._origins.of(node) if given is None else self._origins.part(_part(given))
        if isinstance(origin, Constant) and _is_json(origin, node):
            self._count(len(origin.value) if isinstance(origin.value, str) else 0)
            return LiteralArgument(value=cast(JsonValue, origin.value))
        path = parameter_path(self._origins, node) if given is None else _given_path(origin)
        if path and path[0] is not None and not self._is_changed(path):
            return ParameterArgument(parameter_name=dotted(path))
        return self._reference(node, at) if given is None else self._outside(given)

    def _is_changed(self, path: Path) -> bool:
        """Whether the program may change a part of the caller's arguments before it is sent."""
        return any(may_be(path, changed) for changed in self._changed)

    def _reference(self, node: Node, at: Instance) -> ReferenceArgument:
        text = self.expression(node)
        self._count(len(text))
        return ReferenceArgument(expression=text, node_id=self._producer(node, at))

    def _outside(self, given: Given) -> ReferenceArgument:
        """A part of what a caller gives to the function that a call stands in."""
        inside = dotted(given.path)
        joined = inside if inside.startswith("[") or not inside else f".{inside}"
        return ReferenceArgument(
            expression=f"{self.expression(given.value)}{joined}",
            node_id=self._producer(given.value, given.at),
        )

    def _producer(self, node: Node, at: Instance) -> str | None:
        """The call whose result a value is, or is made from if there is only one."""
        exact = self._flow.exact(node, at)
        producers = self._flow.producers(node, at) if exact is None else [exact[0]]
        return producers[0] if len(producers) == 1 else None

    def expression(self, node: Node) -> str:
        """The author's text on one line, shortened when very long."""
        some = self._tree.source.text[node.start : min(node.end, node.start + _LOOKED_AT)]
        text = _SPACES.sub(" ", some)
        return text if len(text) <= _LONGEST_EXPRESSION else f"{text[:_LONGEST_EXPRESSION]}…"


def _is_json(found: Constant, node: Node) -> bool:
    """Whether JSON can say it: not undefined, no lone surrogate."""
    if found.value is None:
        return node.kind == "null"
    return not isinstance(found.value, str) or is_unicode(found.value)


def _part(given: Given) -> Part:
    return Part(given.value, given.path)


def _given_path(origin: Origin) -> Path | None:
    return origin.path if isinstance(origin, FromArguments) else None


def parameter_path(origins: Origins, node: Node, names: int = _MOST_NAMES) -> Path | None:
    """The part of the caller's arguments that a value is, a default for it left aside; told through
    so many names."""
    node = node.inner
    origin = origins.of(node)
    if isinstance(origin, FromArguments):
        return origin.path
    binding = origins.scopes.binding(node)
    if binding is not None:
        given = [part for part in binding.parts if not part.is_default]
        if len(given) != 1:
            return None
        value, path = given[0].value, given[0].path
        if path or value is None:
            origin = origins.part(given[0])
            return origin.path if isinstance(origin, FromArguments) else None
        node = value.inner
        if names and origins.scopes.binding(node) is not None:
            return parameter_path(origins, node, names - 1)
    return _defaulted(origins, node)


def _defaulted(origins: Origins, node: Node) -> Path | None:
    """The path of `args.x` in `args.x ?? 10`."""
    if node.kind != "binary_expression" or node["operator"].kind not in _DEFAULTING:
        return None
    origin = origins.of(node["left"])
    if not isinstance(origin, FromArguments):
        return None
    default = node["right"]
    known = isinstance(origins.of(default), Constant) or json_value(origins, default) is not None
    return origin.path if known else None


def dotted(path: Path) -> str:
    """A path as people write it: `user.name`, `items[0]`, `rows[]`."""
    text = ""
    for step in path:
        if isinstance(step, str):
            text += f".{step}" if text else step
        else:
            text += "[]" if step is None else f"[{step}]"
    return text


def _has_holes(array: Node) -> bool:
    after_comma = True
    for child in array.children:
        if child.kind == "," and after_comma:
            return True
        after_comma = child.kind == ","
    return False


def _literals(fields: Mapping[str, Argument]) -> list[tuple[str, LiteralArgument]]:
    return [(key, field) for key, field in fields.items() if isinstance(field, LiteralArgument)]
