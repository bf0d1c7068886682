"""Arguments pass: statically known arguments of each call."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

from pydantic import JsonValue

from pml_analysis.arguments.changes import Changed
from pml_analysis.arguments.data_flow import DataFlow
from pml_analysis.arguments.parameter_binding import BoundArgument, ParameterBindings
from pml_analysis.arguments.parameter_paths import dotted, parameter_path
from pml_analysis.arguments.roots import ARGUMENTS, RootedPart
from pml_analysis.arguments.sources import Source, Sources
from pml_analysis.decision.spreads import SPREAD
from pml_analysis.names.absent import Absent
from pml_analysis.names.entries import Entry, entries, is_plain, is_plain_list
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import Constant, FromArguments, Origin
from pml_analysis.structure.calls import CallSite
from pml_analysis.structure.expansion import Expansion, Instance
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

_MAX_EXPRESSION: Final = 200
_MAX_INSPECTED: Final = 10 * _MAX_EXPRESSION
_MAX_DEPTH: Final = 30
"""Maximum depth of nested objects and lists that are told apart."""

_SPACES: Final = re.compile(r"\s+")

_NULL: Final = LiteralArgument(value=None)
_MIN_CHARACTERS: Final = 8
"""Characters that an argument counts for at least."""


class ArgumentsTooLarge(Exception):
    """The arguments of all calls together exceed the bound; `offset` is where the first of those
    beyond it begins."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"too much is given at offset {offset}")
        self.offset = offset


class ArgumentReader:
    """Reads the arguments of calls, in one instance of the function that contains the call. Raises
    ArgumentsTooLarge beyond `limit` characters in total."""

    def __init__(
        self,
        origins: Origins,
        expansion: Expansion,
        flow: DataFlow,
        parameter_bindings: ParameterBindings,
        *,
        limit: int,
    ) -> None:
        self._left = limit
        self._call = 0
        self._tree = origins.tree
        self._origins = origins
        self._flow = flow
        self._bindings = parameter_bindings
        self._changed = Changed(origins)
        self._sources = Sources(origins, expansion, parameter_bindings, self._changed)
        self._absent = Absent(origins)

    def source(self, node: Node, at: Instance) -> Source | None:
        """Return the certain source of a value."""
        return self._sources.of(node, at)

    def read(self, site: CallSite, at: Instance) -> dict[str, Argument]:
        """Return the arguments of a call by name."""
        self._call = site.call.start
        if site.spread is not None:
            text = self.expression(site.spread)
            return {f"{SPREAD}{text}": self._reference(site.spread, at)}
        return {} if site.argument is None else self._fields(site.argument, at, 0)

    def _count(self, size: int) -> None:
        self._left -= max(size, _MIN_CHARACTERS)
        if self._left < 0:
            raise ArgumentsTooLarge(self._call)

    def _value(self, node: Node, at: Instance, depth: int) -> Argument:
        node = node.inner
        if depth < _MAX_DEPTH and is_plain(node):
            fields = self._fields(node, at, depth + 1)
            values = {key: field.value for key, field in _literals(fields)}
            whole = len(values) == len(fields)
            return LiteralArgument(value=values) if whole else ObjectArgument(fields=fields)
        if depth < _MAX_DEPTH and node.kind == "array" and is_plain_list(node):
            return self._array(node, at, depth + 1)
        return self._scalar(node, at, depth)

    def _fields(self, node: Node, at: Instance, depth: int) -> dict[str, Argument]:
        given = self._bindings.follow(node, at)
        if given is not None and not given.path:
            node, at = given.value, given.at
        found = list(self._opened(node, at))
        # A spread or a computed key may overwrite the entries before it.
        unsure = max((i for i, (entry, _) in enumerate(found) if entry.key is None), default=-1)
        fields: dict[str, Argument] = {}
        for i, (entry, where) in enumerate(found):
            key, argument = self._entry(entry, where, depth, is_certain=i > unsure)
            if unsure >= 0:
                fields.pop(key, None)  # dicts keep the order of assignment
            if argument is None:
                fields.pop(key, None)
            else:
                fields[key] = argument
        return fields

    def _opened(self, node: Node, at: Instance) -> Iterator[tuple[Entry, Instance]]:
        """Return the entries of an object, including those of spread parameters whose value is
        known."""
        for entry in entries(self._origins, node):
            is_spread = entry.key is None and entry.computed is None
            given = self._bindings.follow(entry.value, at) if is_spread else None
            if given is not None and not given.path and is_plain(given.value.inner):
                yield from ((inner, given.at) for inner in entries(self._origins, given.value))
            else:
                yield entry, at

    def _entry(
        self, entry: Entry, at: Instance, depth: int, *, is_certain: bool
    ) -> tuple[str, Argument | None]:
        """Return a key and its argument; None for values that JSON leaves out."""
        key = self._key(entry)
        if entry.key is None:
            return key, self._spread(entry, at)
        if key != entry.key:  # it looks like a spread
            reference = self._reference(entry.value, at)
            return key, reference.model_copy(update={"keys": (entry.key,)})
        if not is_certain:
            return key, self._reference(entry.value, at)
        is_absent = self._absent.is_absent(entry.value)
        return key, None if is_absent else self._value(entry.value, at, depth)

    def _key(self, entry: Entry) -> str:
        """Return the key that an entry is listed under: marked for a spread, for a computed key
        known only at run time, and for a key that itself begins with `SPREAD`."""
        key = entry.key
        if key is None:
            key = f"{SPREAD}{self.expression(entry.computed or entry.value)}"
        elif key.startswith(SPREAD):
            key = f"{SPREAD}[{json.dumps(key, ensure_ascii=False)}]"
        self._count(len(key))
        return key

    def _spread(self, entry: Entry, at: Instance) -> Argument:
        """Describe all fields of a spread value, or a value under a key known only at run time."""
        source = self._sources.of(entry.value, at) if entry.computed is None else None
        if source is None:
            return self._reference(entry.value, at)
        return self._sourced(source, entry.value, at)

    def _array(self, node: Node, at: Instance, depth: int) -> Argument:
        items: list[Argument] = []
        for child in node.children:
            if child.kind != ",":
                is_absent = self._absent.is_absent(child)
                items.append(_NULL if is_absent else self._value(child, at, depth))
        values = [item.value for item in items if isinstance(item, LiteralArgument)]
        whole = len(values) == len(items)
        return LiteralArgument(value=values) if whole else ArrayArgument(items=tuple(items))

    def _scalar(self, node: Node, at: Instance, depth: int) -> Argument:
        source = self._sources.of(node, at)
        if source is not None:
            return self._sourced(source, node, at)
        given = self._bindings.follow(node, at)
        if given is not None and not given.path and depth < _MAX_DEPTH:
            return self._value(given.value, given.at, depth + 1)
        origin = self._origins.of(node) if given is None else self._origins.part(_part(given))
        if isinstance(origin, Constant) and _is_json(origin, node):
            self._count(len(origin.value) if isinstance(origin.value, str) else 0)
            return LiteralArgument(value=cast(JsonValue, origin.value))
        path = parameter_path(self._origins, node) if given is None else _given_path(origin)
        is_changed = path is not None and self._changed.may_hold(RootedPart(ARGUMENTS, path))
        if path and path[0] is not None and not is_changed:
            return ParameterArgument(parameter_name=dotted(path))
        return self._reference(node, at) if given is None else self._outside(given)

    def _sourced(self, source: Source, node: Node, at: Instance) -> Argument:
        """Describe a value that certainly is a part of the caller's arguments, or of a result."""
        if source.node_id is None:
            name = dotted(source.path) or self.expression(node)
            self._count(len(name))
            return ParameterArgument(parameter_name=name, path=source.path, default=source.default)
        given = self._bindings.follow(node, at)
        reference = self._reference(node, at) if given is None else self._outside(given)
        return reference.model_copy(update={"node_id": source.node_id, "path": source.path})

    def _reference(self, node: Node, at: Instance) -> ReferenceArgument:
        text = self.expression(node)
        self._count(len(text))
        return ReferenceArgument(expression=text, node_id=self._producer(node, at))

    def _outside(self, given: BoundArgument) -> ReferenceArgument:
        """Describe a part of what a caller passes to the function that contains the call."""
        inside = dotted(given.path)
        joined = inside if inside.startswith("[") or not inside else f".{inside}"
        return ReferenceArgument(
            expression=f"{self.expression(given.value)}{joined}",
            node_id=self._producer(given.value, given.at),
        )

    def _producer(self, node: Node, at: Instance) -> str | None:
        """Return the call whose result a value is, or is computed from if there is only one."""
        exact = self._flow.exact(node, at)
        producers = self._flow.producers(node, at) if exact is None else [exact[0]]
        return producers[0] if len(producers) == 1 else None

    def expression(self, node: Node) -> str:
        """Return the author's text on one line, shortened when very long."""
        some = self._tree.source.text[node.start : min(node.end, node.start + _MAX_INSPECTED)]
        text = _SPACES.sub(" ", some)
        return text if len(text) <= _MAX_EXPRESSION else f"{text[:_MAX_EXPRESSION]}…"


def _is_json(found: Constant, node: Node) -> bool:
    """Whether JSON can express the value: not undefined, no lone surrogate."""
    if found.value is None:
        return node.kind == "null"
    return not isinstance(found.value, str) or is_unicode(found.value)


def _part(given: BoundArgument) -> Part:
    return Part(given.value, given.path)


def _given_path(origin: Origin) -> Path | None:
    return origin.path if isinstance(origin, FromArguments) else None


def _literals(fields: Mapping[str, Argument]) -> list[tuple[str, LiteralArgument]]:
    return [(key, field) for key, field in fields.items() if isinstance(field, LiteralArgument)]
