"""Origins pass: the origin of an expression's value, through names, parts and choices."""

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from pml_analysis.names.bindings import Binding, Scopes
from pml_analysis.names.choices import arms, choices
from pml_analysis.names.folding import MAX_COMPOSED, composed, literal, negative
from pml_analysis.names.globals import FORBIDDEN, GLOBALS
from pml_analysis.names.values import (
    ABSENT,
    ANY_TOOL,
    UNKNOWN,
    Constant,
    FromArguments,
    FromCall,
    FromCapabilities,
    FromTools,
    Origin,
    Unknown,
    as_key,
    bounded,
    constant,
    either,
    part_of,
)
from pml_analysis.syntax.literals import unescape
from pml_analysis.syntax.node_kinds import MEMBERS, WRAPPERS
from pml_analysis.syntax.patterns import Part, Step
from pml_analysis.syntax.tree import Node, Tree

BOUND_ROOTS: Final = ("args", "context")
"""Names of the caller's arguments as a whole, bound in every run."""

IMPLICIT_ROOTS: Final = ("params", "input")
"""Names of the same where a free name is only ever used through its members (`params.x`); else a
parameter of that name."""

CHAIN: Final = MEMBERS | WRAPPERS | {"await_expression"}
"""Kinds whose value is that of their operand, or a part of it."""

_ROOTS: Final[dict[str, Origin]] = {
    "mcp": FromTools(),
    "capabilities": FromCapabilities(),
    **dict.fromkeys(BOUND_ROOTS, FromArguments()),
    **dict.fromkeys(GLOBALS, UNKNOWN),
    **dict.fromkeys(FORBIDDEN, UNKNOWN),
}
_FOLLOWING: Final = Unknown()
"""Placeholder for a name that is being followed."""

_MAX_DEPTH: Final = 60
"""Maximum number of names in a row that are followed; anything deeper counts as a possible tool."""


class Origins:
    """Finds the origins of expressions in one program: `of(expression)`."""

    def __init__(self, tree: Tree, scopes: Scopes) -> None:
        self.tree = tree
        self.scopes = scopes
        self._known: dict[int, Origin] = {}
        self._final: dict[int, Origin] = {}
        """Cached answers, from the time when all names are known."""
        self._are_names_known = False
        self._depth = 0
        self.known_objects: dict[int, Node | None] = {}
        """Cached object literals by declared name."""
        self.is_tampered: bool | None = None
        self.changed_members = {target.node.index for target in scopes.member_writes}
        self.implicit_roots = _implicit_roots(tree, scopes)
        """The members of `IMPLICIT_ROOTS` that the program uses."""
        for binding in scopes.bindings:  # in source order, most references are resolved already
            self.binding(binding)
        self._are_names_known = True

    @cached_property
    def _near_tools(self) -> set[int]:
        return _near_tools(self.tree, self.scopes)

    def of(self, node: Node) -> Origin:
        """Return the origin of an expression's value."""
        known = self._final.get(node.index)
        if known is None:
            known = self._find(node)
            if self._are_names_known and self._depth == 0:
                self._final[node.index] = known
        return known

    def _find(self, node: Node) -> Origin:
        if self._depth >= _MAX_DEPTH:
            return ANY_TOOL
        self._depth += 1
        if node.kind not in CHAIN:
            origin = self._start(node)
            self._depth -= 1
            return origin
        members: list[Node] = []
        while node.kind in CHAIN and (inside := node.operand) is not None:
            if node.kind in MEMBERS:
                members.append(node)
            node = inside
        origin = self._start(node)
        for member in reversed(members):
            origin = part_of(origin, self.key(member))
        self._depth -= 1
        return origin

    def key(self, member: Node) -> Step:
        """Return the key of a member or subscript expression; None when it is known only at run
        time."""
        name = member.child("property")
        if name is not None:
            return self.tree.name(name)
        index = member.child("index")  # neither: a type in a cast, `1 as import("a").B`
        found = self.of(index) if index is not None else UNKNOWN
        return as_key(found.value) if isinstance(found, Constant) else None

    def binding(self, binding: Binding) -> Origin:
        """Return the origin of a name's value, whichever of its parts it has."""
        at = binding.node.index
        known = self._known.get(at)
        if known is None:
            self._known[at] = _FOLLOWING
            if len(binding.parts) == 1 and not binding.starts_absent:
                known = self.part(binding.parts[0])
            else:
                absent = [ABSENT] if binding.starts_absent else []
                known = either([*map(self.part, binding.parts), *absent])
            known = self._known[at] = bounded(known)
        elif known is _FOLLOWING:
            # A name that refers to itself: no new origin, unless tools are involved.
            return ANY_TOOL if at in self._near_tools else UNKNOWN
        return known

    def part(self, part: Part) -> Origin:
        """Return the origin of a part of an expression's value."""
        origin = self.of(part.value) if part.value is not None else UNKNOWN
        for step in part.path:
            origin = part_of(origin, step)
        return origin

    def _start(self, node: Node) -> Origin:
        """Return the origin of an expression that is no chain of members."""
        match node.kind:
            case "identifier" | "shorthand_property_identifier":
                binding = self.scopes.by_identifier.get(node.index)
                if binding is not None:
                    return self.binding(binding)
                name = self.tree.name(node)
                free = FromArguments(() if name in self.implicit_roots else (name,))
                return _ROOTS.get(name, free)
            case "call_expression":
                return FromCall(node)
            case "binary_expression" | "unary_expression":
                return self._chosen(node) or self._computed(node)
            case "template_string":
                return self._template(node)
            case _:
                return self._chosen(node) or literal(self.tree, node)

    def _chosen(self, node: Node) -> Origin | None:
        several = choices(node)
        return either(map(self.of, several)) if several else None

    def _computed(self, node: Node) -> Origin:
        """Fold constants written as sums or with a sign."""
        left, sign = node.child("left"), node["operator"].kind
        operand = node["argument" if left is None else "right"]
        value = self.of(operand) if sign in ("+", "-") else UNKNOWN
        if not isinstance(value, Constant):
            return UNKNOWN
        if left is None:
            return negative(value) if sign == "-" else UNKNOWN
        other = self.of(left)
        if sign == "-" or not isinstance(other, Constant):
            return UNKNOWN
        if other.type == value.type == "string":
            return composed(f"{other.value}{value.value}")
        return UNKNOWN

    def _template(self, node: Node) -> Origin:
        """Fold a template whose substitutions are all constant texts."""
        text = ""
        at = node.start + 1
        for child in node.children:
            if child.kind == "template_substitution":
                value = self.of(child.children[0])
                if not isinstance(value, Constant) or value.type != "string":
                    return UNKNOWN
                text += f"{self._raw(at, child.start)}{value.value}"
                at = child.end
                if len(text) > MAX_COMPOSED:
                    return UNKNOWN
        return constant(text + self._raw(at, node.end - 1))

    def _raw(self, start: int, end: int) -> str:
        return unescape(self.tree.source.text[start:end].replace("\r\n", "\n"))


def _implicit_roots(tree: Tree, scopes: Scopes) -> frozenset[str]:
    opened = {name: True for name in IMPLICIT_ROOTS}
    used: set[str] = set()
    for node in scopes.free:
        name = tree.name(node)
        if name in opened:
            used.add(name)
            opened[name] = opened[name] and _is_opened(node)
    return frozenset(name for name in used if opened[name])


def _is_opened(node: Node) -> bool:
    """Whether a use reads parts of a value and not the whole."""
    above = node.above
    if above.kind == "variable_declarator":
        return above["name"].kind == "object_pattern"
    return above.kind in MEMBERS and above.operand is node


def _near_tools(tree: Tree, scopes: Scopes) -> set[int]:
    """Return the bindings through which a value of `mcp` or `capabilities` may pass, at any
    depth."""
    readers: dict[int, list[Binding]] = {}
    found: set[int] = set()
    fresh: deque[Binding] = deque()
    for binding in scopes.bindings:
        for name in _names_in(binding):
            source = scopes.binding(name)
            if source is not None:
                readers.setdefault(source.node.index, []).append(binding)
            elif tree.name(name) in ("mcp", "capabilities"):
                fresh.append(binding)
    while fresh:
        binding = fresh.popleft()
        if binding.node.index not in found:
            found.add(binding.node.index)
            fresh.extend(readers.get(binding.node.index, ()))
    return found


def _names_in(binding: Binding) -> Iterator[Node]:
    """Yield the identifiers whose value, or a part of it, the binding may have."""
    waiting = [part.value for part in binding.parts if part.value is not None]
    while waiting:
        node = waiting.pop()
        while node.kind in CHAIN and (inside := node.operand) is not None:
            node = inside
        if node.kind == "identifier":
            yield node
        else:
            waiting.extend(arms(node))
