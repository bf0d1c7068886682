"""Changes pass: parts of the caller's arguments, and of tool results, that the program may change
before it sends them.

Answers two questions: does anything change such a part under its own name, or change a value of
unknown origin; and in the latter case, which parts are aliased where that value may be one of them.
"""

from functools import cached_property
from typing import Final

from pydantic import JsonValue

from pml_analysis.arguments.argument_aliasing import FunctionNames, aliased_parts, called_by
from pml_analysis.arguments.roots import RootedPart, rooted_part
from pml_analysis.names.bindings import Binding
from pml_analysis.names.constants import json_value
from pml_analysis.names.globals import GLOBALS
from pml_analysis.names.origins import Origins
from pml_analysis.names.tampering import is_tampered
from pml_analysis.names.values import FromCall, holds_tools
from pml_analysis.syntax.node_kinds import CONTAINERS, FUNCTIONS, INLINE_FUNCTIONS, MEMBERS
from pml_analysis.syntax.patterns import Part, Step
from pml_analysis.syntax.tree import Node

_DEFAULTING: Final = frozenset({"??=", "||="})
_OF_LISTS: Final = "copyWithin fill pop push reverse shift sort splice unshift"
_MUTATORS: Final = frozenset(_OF_LISTS.split())
"""Methods that change their list; no other JSON values have such methods."""

_MUTATE_FIRST: Final = frozenset({"assign", "defineProperties", "defineProperty", "deleteProperty"})
"""Functions of `Object` and `Reflect` that change their first argument; so does `Reflect.set`,
whose name maps share."""

_INDIRECT: Final = frozenset({"apply", "bind", "call", "construct"})
_CHANGING: Final = _MUTATORS | _MUTATE_FIRST | _INDIRECT | {"set"}
_SIGNS: Final = ("assign", "Propert", "Proxy", "Reflect", "\\")
"""Substrings of which every text contains one that changes things by other means than lists' own
methods."""

_FRESH: Final = CONTAINERS | INLINE_FUNCTIONS | {"string"}
_COPIES: Final = (
    "concat entries filter flat flatMap from fromEntries keys map parse slice split toReversed"
    " toSorted toSpliced values with"
)
_COPYING: Final = frozenset(_COPIES.split())
"""Functions and methods whose result is a fresh list or object."""


class Changed:
    """The parts that may be changed."""

    def __init__(self, origins: Origins) -> None:
        changes = _Changes(origins)
        found = changes.changed_parts()
        found += aliased_parts(origins, changes.own) if changes.any_other else []
        self._set = changes.defaults
        self._is_any = is_tampered(origins)
        self._parts: dict[int, list[RootedPart]] = {}
        for part in dict.fromkeys(found):
            self._parts.setdefault(part.root, []).append(part)

    def set_where_missing(self, part: RootedPart) -> tuple[JsonValue, ...] | None:
        """Return the known value that `??=` gives a part where it is missing, before or after;
        nothing where none does, None where that is not known."""
        values = [known for one, known in self._set.items() if one.meets(part)]
        if not values:
            return ()
        is_one = part in self._set and len(values) == len(values[0]) == 1
        return (values[0][0],) if is_one else None

    def may_hold(self, part: RootedPart) -> bool:
        """Whether a part is a changed one, is inside one, or contains one."""
        return self._is_any or any(
            part.meets(changed) for changed in self._parts.get(part.root, ())
        )


class _Changes:
    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._tree = origins.tree
        self._is_by_other_means = any(sign in self._tree.source.text for sign in _SIGNS)
        self._changed: list[RootedPart] = []
        self.defaults: dict[RootedPart, list[JsonValue]] = {}
        self.any_other = False
        """Whether something is changed that may be such a part under another name."""

    @cached_property
    def own(self) -> FunctionNames:
        """Names that the program's own functions may have."""
        return FunctionNames(self._origins)

    def changed_parts(self) -> list[RootedPart]:
        """Return the parts that are changed under their own names."""
        tree = self._tree
        for target in self._origins.scopes.member_writes:
            # A function that becomes a part may change what it is a part of: toString, say.
            is_function = any(map(self._is_function, target.parts))
            self._member(target.node, is_whole=is_function)
        for node in tree.of("unary_expression"):
            if node["operator"].kind == "delete":
                self._member(node["argument"].inner, is_whole=False)
        for node in tree.of("property_identifier"):
            if tree.name(node) in _CHANGING and node.field == "property":
                self._named(node.above, tree.name(node))
        for member in tree.of("subscript_expression"):
            key = self._origins.key(member)
            if key is None or key in _CHANGING:
                self._named(member, key)
        if self._is_by_other_means:
            self.any_other |= not all(map(self._is_seen, tree.of("call_expression")))
        self.any_other |= any(map(self._opens, self._origins.scopes.bindings))
        return self._changed

    def _is_function(self, part: Part) -> bool:
        node = part.value.inner if part.value is not None else None
        binding = self._origins.scopes.binding(node) if node is not None else None
        values = [] if binding is None else [one.value for one in binding.parts]
        return any(one is not None and one.inner.kind in FUNCTIONS for one in [node, *values])

    def _member(self, member: Node, *, is_whole: bool) -> None:
        """Handle a member that is written or deleted."""
        if member.kind in MEMBERS and not self._is_default(member):
            self._change(member.children[0], () if is_whole else (self._origins.key(member),))

    def _is_default(self, member: Node) -> bool:
        """Whether a part is only given a known value where it is missing: `args.n ??= 10`."""
        above = member.above
        is_augmented = above.kind == "augmented_assignment_expression"
        if not is_augmented or above["operator"].kind not in _DEFAULTING:
            return False
        part = rooted_part(self._origins, self._origins.of(member))
        value = json_value(self._origins, above["right"])
        if part is None or value is None or isinstance(value, dict | list):
            return False
        self.defaults.setdefault(part, []).append(value)
        return True

    def _named(self, member: Node, name: Step) -> None:
        """Handle a member whose name belongs to something that changes values, or may."""
        call = called_by(member)
        if call is None:  # a value, to be called elsewhere; or what `call` belongs to
            is_hidden = name is None and self._is_language(member.children[0].inner)
            is_value = name is not None and member.above.kind != "member_expression"
            self.any_other |= is_hidden or is_value
        elif not holds_tools(self._origins.of(member)):
            self._method(call, member, name)

    def _method(self, call: Node, member: Node, name: Step) -> None:
        if name in _MUTATORS:
            self._change(member.children[0], ())
        elif name in _MUTATE_FIRST or (name == "set" and self._is_by_other_means):
            for given in call["arguments"].children[:1]:
                self._change(given, ())
        elif name != "set":
            self.any_other = True
            part = rooted_part(self._origins, self._origins.of(member.children[0]))
            self._changed += () if part is None else (part,)

    def _opens(self, binding: Binding) -> bool:
        """Whether a mutating function is destructured out of an object."""
        for part in binding.parts:
            if part.path and part.value is not None:
                is_hidden = None in part.path and self._is_language(part.value.inner)
                if is_hidden or not _CHANGING.isdisjoint(part.path):
                    return True
        return False

    def _is_language(self, node: Node) -> bool:
        """Whether it is one of the language's own objects, under any name."""
        binding = self._origins.scopes.binding(node)
        if binding is not None:
            values = [part.value.inner for part in binding.parts if part.value is not None]
            return any(value is not node and self._is_global(value) for value in values)
        return self._is_global(node)

    def _is_global(self, node: Node) -> bool:
        is_free = node.kind == "identifier" and self._origins.scopes.binding(node) is None
        return is_free and self._tree.name(node) in GLOBALS

    def _change(self, changed: Node, key: tuple[Step, ...]) -> None:
        """Record a change of a value, under this key or an unknown one."""
        part = rooted_part(self._origins, self._origins.of(changed))
        if part is not None:
            self._changed.append(RootedPart(part.root, (*part.path, *key)))
            return
        binding = self._origins.scopes.binding(changed.inner)
        for one in [Part(changed.inner)] if binding is None else binding.parts:
            part = rooted_part(self._origins, self._origins.part(one))
            if part is not None:
                self._changed.append(RootedPart(part.root, (*part.path, *key)))
            elif one.value is None or not self._is_fresh(one, one.value):
                self.any_other = True

    def _is_fresh(self, part: Part, value: Node) -> bool:
        """Whether a value is certainly created here: no part of anything from outside."""
        origin = self._origins.part(part)
        if isinstance(origin, FromCall):
            return not origin.path and self._is_copy(origin.call)
        value = value.inner
        if value.kind == "new_expression":
            made = value["constructor"]
            return not part.path and self._is_global(made) and self._tree.text(made) != "Proxy"
        return not part.path and value.kind in _FRESH

    def _is_copy(self, call: Node) -> bool:
        callee = call["function"].inner
        if callee.kind not in MEMBERS:
            return self._is_global(callee) and self._tree.text(callee) == "structuredClone"
        name = self._origins.key(callee)
        return name in _COPYING and name not in self.own

    def _is_seen(self, call: Node) -> bool:
        """Whether the effect of a callee that is no member is known: the program's own function, a
        tool, or one that changes nothing."""
        callee = call["function"].inner
        if callee.kind in MEMBERS or holds_tools(self._origins.of(callee)):
            return True
        binding = self._origins.scopes.binding(callee)
        if binding is None:
            return callee.kind != "identifier" or self._is_global(callee)
        parts = [part.value.inner.kind for part in binding.parts if part.value and not part.path]
        return binding.kind == "function" or parts == ["arrow_function"]
