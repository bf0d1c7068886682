"""Argument aliasing pass: parts of the caller's arguments, and of tool results, that get names
which the analysis does not follow.

A change of a value of unknown origin may change one of them.
"""

from collections.abc import Iterator
from typing import Final

from pml_analysis.arguments.roots import RootedPart, rooted_part
from pml_analysis.names.callbacks import CHAINING, given_function
from pml_analysis.names.choices import arms
from pml_analysis.names.origins import CHAIN, Origins
from pml_analysis.names.values import holds_tools
from pml_analysis.structure.marks import combinator, combined
from pml_analysis.syntax.node_kinds import CONTAINERS, FUNCTIONS, INSPECTING, MEMBERS, WRAPPERS
from pml_analysis.syntax.patterns import Step, key_of, targets
from pml_analysis.syntax.tree import Node

_MAY_BE_FUNCTIONS: Final = FUNCTIONS | {"identifier", *MEMBERS}
_LITERALS: Final = CONTAINERS | {"pair", "spread_element"}
_METHODS: Final = (
    "charAt endsWith has includes indexOf isArray join keys lastIndexOf localeCompare match padEnd"
    " padStart repeat replace replaceAll search split startsWith substring test toFixed"
    " toLocaleString toLowerCase toString toUpperCase trim trimEnd trimStart"
)
_READING: Final = frozenset(_METHODS.split())
"""Methods that expose no part of their receiver or arguments."""

_FUNCTIONS: Final = (
    "Boolean Date Error JSON Math Number String URL console decodeURIComponent encodeURIComponent"
    " isNaN parseFloat parseInt structuredClone"
)
_READERS: Final = frozenset(_FUNCTIONS.split())
"""Functions and classes with the same property, and their members."""


class FunctionNames:
    """Names under which the program may have put functions of its own into objects."""

    def __init__(self, origins: Origins) -> None:
        tree, writes = origins.tree, origins.scopes.member_writes
        written = {origins.key(target.node): target.parts for target in writes}
        self._is_any = bool(tree.of("computed_property_name")) or any(
            part.value is None or part.value.inner.kind in _MAY_BE_FUNCTIONS
            for part in written.get(None, ())
        )
        keys = [
            node
            for node in tree.of("property_identifier", "shorthand_property_identifier", "string")
            if node.field in ("key", "name") or node.above.kind == "object"
        ]
        self._names = {*written, *(key_of(tree, key) for key in keys)}

    def __contains__(self, name: object) -> bool:
        return self._is_any or name in self._names


def aliased_parts(origins: Origins, own: FunctionNames) -> list[RootedPart]:
    """List every such part."""
    uses = _Uses(origins, own)
    found = {
        rooted_part(origins, origins.of(use)): None for use in uses.parts() if uses.is_aliased(use)
    }
    return [part for part in found if part is not None]


class _Uses:
    def __init__(self, origins: Origins, own: FunctionNames) -> None:
        self._origins = origins
        self._tree = origins.tree
        self._scopes = origins.scopes
        self._own = own

    def parts(self) -> Iterator[Node]:
        """Yield the widest expressions that are such parts; for a method, its receiver."""
        named = (use for binding in self._scopes.bindings for use in binding.uses)
        calls = self._tree.of("call_expression")
        for node in [*self._scopes.free, *named, *calls]:
            if self._is_part(node):
                while node.above.kind in CHAIN and node.above.operand is node:
                    if node.above.kind in MEMBERS and called_by(node.above) is not None:
                        break
                    node = node.above
                yield node

    def _is_part(self, node: Node) -> bool:
        return rooted_part(self._origins, self._origins.of(node)) is not None

    def is_aliased(self, node: Node) -> bool:
        """Whether the value gets, or may get, another name here."""
        above = node.above
        if above.kind in MEMBERS and above.operand is node:  # of a method
            key = self._origins.key(above)
            return not self._only_reads(key) and not self._is_chained(above, key)
        while node in arms(above):
            is_assigned = above.kind.endswith("assignment_expression")
            if is_assigned and not self._is_followed(above["left"]):
                return True
            node, above = above, above.above
            while above.kind in WRAPPERS:
                node, above = above, above.above
        return self._is_aliased_by(node, above)

    def _is_aliased_by(self, node: Node, above: Node) -> bool:
        match above.kind:
            case "variable_declarator":
                return not self._is_followed(above["name"])
            case "for_in_statement":
                return above["operator"].kind == "of" and not self._is_followed(above["left"])
            case "return_statement":
                return _is_in_function(above)
            case "template_substitution":
                return above.above.field == "arguments"
            case "arguments" | "array" | "object" | "pair" | "spread_element":
                return not (self._is_given_to_reader(node) or self._is_awaited_element(above))
            case "subscript_expression":
                return node.field != "index"
            case kind:
                return kind not in INSPECTING

    def _only_reads(self, method: Step) -> bool:
        return method in _READING and method not in self._own

    def _is_chained(self, member: Node, key: Step) -> bool:
        """Whether the value only goes to a function written in place, whose parameter is
        followed."""
        call = called_by(member)
        function = given_function(self._tree, call) if call is not None else None
        is_waiting = key in CHAINING and function is not None and function.kind in FUNCTIONS
        return is_waiting and call is not None and call.above.kind == "expression_statement"

    def _is_awaited_element(self, array: Node) -> bool:
        """Whether it is an element of `const [a, b] = await Promise.all([…])`."""
        call = array.above.above
        if array.kind != "array" or combinator(self._tree, call) != "all":
            return False
        awaited = call.above
        is_awaited = combined(call) is array and awaited.kind == "await_expression"
        declared = awaited.above.child("name") if is_awaited else None
        is_opened = declared is not None and declared.kind == "array_pattern"
        return declared is not None and is_opened and self._is_followed(declared)

    def _is_followed(self, pattern: Node) -> bool:
        """Whether all the names of a pattern are known to be such parts."""
        for target in targets(self._tree, pattern, ()):
            binding = self._scopes.binding(target.node)
            if (
                binding is None
                or rooted_part(self._origins, self._origins.binding(binding)) is None
            ):
                return False
        return True

    def _is_given_to_reader(self, node: Node) -> bool:
        """Whether every receiver of the value is a tool, which gets a copy, or only reads it."""
        is_whole = True
        while node.above.kind in _LITERALS or node.above.kind in WRAPPERS:
            is_whole = is_whole and node.above.kind in WRAPPERS
            node = node.above
        if node.above.kind != "arguments":
            return False
        callee = node.above.above.children[0].inner
        if holds_tools(self._origins.of(callee)):
            return True
        if callee.kind in MEMBERS:
            owner = callee.children[0]
            is_reader = self._is_free(owner) and self._tree.text(owner) in _READERS
            others = [one for one in node.above.children if one is not node]
            is_shown = any(one.inner.kind in _MAY_BE_FUNCTIONS for one in others)
            return (is_reader and not is_shown) or (
                is_whole and self._only_reads(self._origins.key(callee))
            )
        return is_whole and self._is_free(callee) and self._tree.text(callee) in _READERS

    def _is_free(self, node: Node) -> bool:
        return node.kind == "identifier" and self._scopes.binding(node) is None


def called_by(member: Node) -> Node | None:
    """Return the call of which a member expression is the callee."""
    while member.above.kind in WRAPPERS:
        member = member.above
    is_callee = member.field == "function" and member.above.kind == "call_expression"
    return member.above if is_callee else None


def _is_in_function(node: Node) -> bool:
    above = node.parent
    while above is not None and above.kind not in FUNCTIONS:
        above = above.parent
    return above is not None
