"""Normal form pass: a hash that layout, comments, types and local names do not change.

The form is the tree, one line per node: depth, place in the parent, kind, text. Layout is gone with
the tokens that carry it: semicolons, quotes, redundant parentheses, trailing commas. So is
shorthand: `{a}` reads `{a: a}`, or renaming a local would show.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from pml_analysis.names.bindings import Binding, Scopes
from pml_analysis.syntax.literals import number_value, string_value
from pml_analysis.syntax.node_kinds import (
    CASTS,
    CHAIN_LINKS,
    SILENT,
    TYPES,
    UNBOUND_NAMES,
    VERBATIM,
    WRAPPERS,
)
from pml_analysis.syntax.tree import Node, Tree

_NO_WORDS: Final[Mapping[int, str]] = MappingProxyType({})
_KEYS: Final = frozenset({"key", "name"})
_LEFT_OUT: Final = TYPES.union(SILENT)
_CHAINED: Final = CHAIN_LINKS - WRAPPERS
_CHAINING: Final = frozenset({"function", "object"})


def code_hash(tree: Tree, scopes: Scopes) -> str:
    """Return the SHA-256 of the program's normal form, in hex."""
    form = normal_form(tree, scopes)
    return hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest()


def normal_form(tree: Tree, scopes: Scopes, words: Mapping[int, str] = _NO_WORDS) -> str:
    """Return the normal form itself; a node whose index is in `words` as that word, whatever is in
    it."""
    return "\n".join(_Writer(tree, scopes).write(words))


class _Writer:
    def __init__(self, tree: Tree, scopes: Scopes) -> None:
        self.lines: list[str] = []
        self._tree = tree
        self._bindings = scopes.by_identifier
        self._locals: dict[Binding, str] = {}
        self._depth = [0] * len(tree.nodes)
        """By node: the depth of its children."""
        self._inherited: dict[int, str | None] = {}
        """By omitted wrapper: the place that its operand has instead."""

    def write(self, words: Mapping[int, str]) -> list[str]:
        """Write every node; the depth of its children follows from the lines written."""
        depths, inherited, unusual = self._depth, self._inherited, self._UNUSUAL
        names, word = self._tree.name, UNBOUND_NAMES
        add = self.lines.append
        depth = written = 0
        for node in self._tree.nodes:
            if node.index < written:
                continue
            parent, place, kind = node.parent, node.field, node.kind
            if parent is not None:
                depth = depths[parent.index]
                if parent.index in inherited:
                    if parent.children[0] is not node and parent.kind in CASTS:
                        continue  # the type
                    place = inherited[parent.index]
            if node.index in words:
                add(f"{depth} {place} {words[node.index]}")
                written = node.stop
            elif kind in unusual:
                depths[node.index] = unusual[kind](self, node, depth, place)
            elif kind in word:
                add(f"{depth} {place} {kind} {names(node)}")
            else:
                add(f"{depth} {place} {kind}")
                depths[node.index] = depth + 1
        return self.lines

    def _wrapper(self, node: Node, depth: int, place: str | None) -> int:
        """Write a wrapper: nothing, but for the parentheses that end an optional chain."""
        is_parenthesis = node.kind == "parenthesized_expression"
        if is_parenthesis and place in _CHAINING and node.inner.kind in _CHAINED:
            self.lines.append(f"{depth} {place} {node.kind}")
            return depth + 1
        self._inherited[node.index] = place
        return depth

    def _identifier(self, node: Node, depth: int, place: str | None) -> int:
        if place == "parameter" and node.above.kind == "arrow_function":
            self.lines.append(f"{depth} parameters formal_parameters")
            self.lines.append(f"{depth + 1} None required_parameter")
            depth, place = depth + 2, "pattern"
        binding = self._bindings.get(node.index)
        if binding is None:  # a free name as it is; a local by the order in which it is met
            name = self._tree.name(node)
        else:
            name = self._locals.setdefault(binding, f"%{len(self._locals)}")
        self.lines.append(f"{depth} {place} identifier {name}")
        return depth

    def _number(self, node: Node, depth: int, place: str | None) -> int:
        text = self._tree.text(node)
        value = number_value(text)
        self.lines.append(f"{depth} {place} number {text if value is None else value!r}")
        return depth

    def _string(self, node: Node, depth: int, place: str | None) -> int:
        """Write a string; as a key, `"a"` is `a`."""
        value = string_value(self._tree.text(node))
        if place in _KEYS:
            self.lines.append(f"{depth} {place} property_identifier {_key(value)}")
        else:
            self.lines.append(f"{depth} {place} string {json.dumps(value)}")
        return depth

    def _parameter(self, _: Node, depth: int, place: str | None) -> int:
        self.lines.append(f"{depth} {place} required_parameter")
        return depth + 1

    def _shorthand(self, node: Node, depth: int, place: str | None) -> int:
        """Write `{a}` as `{a: a}`."""
        if node.above.kind == "object_assignment_pattern":
            return self._identifier(node, depth, place)
        pair = "pair_pattern" if node.kind.endswith("_pattern") else "pair"
        self.lines.append(f"{depth} {place} {pair}")
        self.lines.append(f"{depth + 1} key property_identifier {self._tree.name(node)}")
        return self._identifier(node, depth + 1, "value")

    def _default(self, node: Node, depth: int, place: str | None) -> int:
        """Write `{a = 1}` as `{a: a = 1}`."""
        key = self._tree.name(node.children[0])
        self.lines.append(f"{depth} {place} pair_pattern")
        self.lines.append(f"{depth + 1} key property_identifier {key}")
        self.lines.append(f"{depth + 1} value assignment_pattern")
        return depth + 2

    def _text(self, node: Node, depth: int, place: str | None) -> int:
        self.lines.append(f"{depth} {place} {node.kind} {json.dumps(self._tree.text(node))}")
        return depth + 1

    def _hole(self, comma: Node, depth: int, place: str | None) -> int:
        """Write a comma that stands for a missing item: `[, a]`, `[a, , b]`."""
        before = self._tree.nodes[comma.index - 1]
        if before is comma.parent or (before.kind == "," and before.parent is comma.parent):
            self.lines.append(f"{depth} {place} ,")
        return depth

    def _nothing(self, _: Node, depth: int, __: str | None) -> int:
        """Skip a leaf that has no effect on the program."""
        return depth

    _UNUSUAL: ClassVar[dict[str, Callable[["_Writer", Node, int, str | None], int]]] = {
        **dict.fromkeys(WRAPPERS, _wrapper),
        **dict.fromkeys(_LEFT_OUT, _nothing),
        **dict.fromkeys(VERBATIM, _text),
        ",": _hole,
        "identifier": _identifier,
        "number": _number,
        "object_assignment_pattern": _default,
        "optional_parameter": _parameter,
        "shorthand_property_identifier": _shorthand,
        "shorthand_property_identifier_pattern": _shorthand,
        "string": _string,
        "type_identifier": _identifier,
    }
    """Writers of the kinds that are not written verbatim."""


def _key(value: str) -> str:
    """Return a key as an identifier is written, or quoted where it is none."""
    return value if value.isidentifier() else json.dumps(value)
