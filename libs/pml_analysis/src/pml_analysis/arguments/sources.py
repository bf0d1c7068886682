"""Sources pass: values that certainly are an unchanged part of the caller's arguments, or of the
result of one tool call.

Followed are names that always have that one value, members, elements of lists, functions of the
program that return it, and `await`. Anything that computes, chooses or may change the value ends
the search.
"""

from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from pml_analysis.arguments.changes import Changed
from pml_analysis.arguments.parameter_binding import Given, HandedIn, is_given_element
from pml_analysis.arguments.parameter_paths import DEFAULTING
from pml_analysis.arguments.roots import ARGUMENTS, Rooted, waited_for
from pml_analysis.arguments.value_parts import (
    Sought,
    Taken,
    data_key,
    data_path,
    is_iterated,
    is_left,
    is_of_callback,
    only_result,
)
from pml_analysis.names.bindings import Binding
from pml_analysis.names.callbacks import ELEMENT_OF, method_of
from pml_analysis.names.constants import json_value
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import CallByName, FromArguments, FromTools
from pml_analysis.structure.expansion import Expansion, Instance
from pml_analysis.structure.marks import combinator, combined
from pml_analysis.syntax.node_kinds import INLINE_FUNCTIONS, MEMBERS, USE_NAMES
from pml_analysis.syntax.patterns import Path
from pml_analysis.syntax.tree import Node

_MOST_STEPS: Final = 100
_DEEPEST: Final = 20
"""Maximum number of lists mapped from each other that are followed."""

_OF_THE_SAME: Final = frozenset({"filter", "slice", "toReversed", "toSorted"})
"""Methods of a list that return a list of its elements."""


@dataclass(frozen=True, slots=True)
class Source:
    """A part of the caller's arguments (`node_id` is None), or of the result of that node; where it
    is undefined, null or falsy, `default` applies, if any."""

    path: Path
    node_id: str | None = None
    default: tuple[JsonValue, ...] = ()


class Sources:
    """Finds the source of expressions of one program: `of(expression, instance)`."""

    def __init__(
        self, origins: Origins, expansion: Expansion, handed_in: HandedIn, changed: Changed
    ) -> None:
        self._origins = origins
        self._tree = origins.tree
        self._expansion = expansion
        self._handed_in = handed_in
        self._changed = changed
        self._known: dict[tuple[int, int], Source | None] = {}
        self._lists: dict[tuple[int, int], bool] = {}
        self._depth = 0

    def of(self, node: Node, at: Instance) -> Source | None:
        """Return the certain source of a value."""
        key = (node.index, at.number)
        if key not in self._known:
            self._known[key] = self._find(Sought(node, at))
        return self._known[key]

    def _find(self, sought: Sought) -> Source | None:
        following: Sought | Source | None = sought
        for _ in range(_MOST_STEPS):
            if not isinstance(following, Sought):
                return following
            following = self._step(following)
        return None

    def _step(self, sought: Sought) -> Sought | Source | None:
        node = sought.value.inner
        if node.kind in USE_NAMES:
            return self._named(node, sought)
        if node.kind in MEMBERS:
            key = data_key(self._origins.key(node))
            return None if key is None else sought.inside(node.children[0], (key,))
        match node.kind:
            case "await_expression" if node.operand is not None:
                return replace(sought, value=node.operand, is_awaited=True)
            case "call_expression":
                return self._called(node, sought)
            case "binary_expression" if node["operator"].kind in DEFAULTING:
                return self._or_default(sought, node["left"], node["right"])
            case _:
                return None

    def _or_default(self, sought: Sought, value: Node, default: Node) -> Sought | None:
        """Return the source of a value with a known default."""
        known = json_value(self._origins, default)
        if known == [] and sought.path[:1] == (None,):  # it has no elements
            return replace(sought, value=value)
        is_known = known is not None or default.inner.kind == "null"
        if not is_known or sought.path or sought.default:
            return None
        return replace(sought, value=value, default=(known,))

    def _named(self, name: Node, sought: Sought) -> Sought | Source | None:
        binding = self._origins.scopes.binding(name)
        if binding is None:
            origin = self._origins.of(name)
            if not isinstance(origin, FromArguments):
                return None
            return self._source(ARGUMENTS, (*origin.path, *sought.path), sought)
        given = self._handed_in.given(binding.node, sought.at)
        where = self._expansion.enclosing(binding.node, sought.at)
        if given is not None:
            return self._handed(given, binding, where, sought)
        return self._held(binding, replace(sought, at=where))

    def _handed(
        self, given: Given, binding: Binding, where: Instance, sought: Sought
    ) -> Sought | None:
        """Return the source of the argument that a known invocation passes to a parameter."""
        place = where.place
        if place is None or binding.node.above.kind == "rest_pattern":
            return None
        taken: Taken = "value" if place.kind == "call_expression" else "resolved"
        path = given.path
        if taken == "resolved" and is_given_element(self._tree, place):
            taken, path = "element", path[1:]
        rest = data_path(path)
        if rest is None:
            return None
        sought = replace(sought, at=given.at)
        if given.default is not None:
            return None if path else self._or_default(sought, given.value, given.default)
        return sought.of(given.value, rest, taken)

    def _held(self, binding: Binding, sought: Sought) -> Sought | None:
        """Return the source of a name that is assigned once."""
        held = [part for part in binding.parts if not part.is_default]
        defaults = [part for part in binding.parts if part.is_default]
        value = held[0].value if len(held) == 1 else None
        if binding.starts_absent or value is None or len(defaults) > 1:
            return None
        name = binding.node
        if name.above.kind == "rest_pattern" and not is_left(self._tree, name, sought.path):
            return None
        for default in defaults:
            if default.path or default.value is None:
                return None
            within = self._or_default(sought, value, default.value)
            if within is None:
                return None
            sought = within
        return self._taken_from(binding, value, held[0].path, sought)

    def _taken_from(
        self, binding: Binding, value: Node, path: Path, sought: Sought
    ) -> Sought | None:
        taken: Taken = "value"
        if binding.kind == "parameter":
            if not is_of_callback(binding.node):
                return None
            is_element = method_of(self._tree, value.above.above) in ELEMENT_OF
            taken = "element" if is_element else "resolved"
        elif is_iterated(binding, value):
            taken = "element"
        rest = data_path(path[1:] if taken == "element" else path)
        return None if rest is None else sought.of(value, rest, taken)

    def _called(self, call: Node, sought: Sought) -> Sought | Source | None:
        at = self._expansion.enclosing(call, sought.at)
        sought = replace(sought, at=at)
        entered = self._expansion.entered.get((call.index, at.number))
        if entered is not None and entered.unit is not None:
            return self._returned(entered.unit.function, replace(sought, at=entered))
        if isinstance(self._origins.of(call["function"]), FromTools | CallByName):
            node_id = self._expansion.ids.get((call.index, at.number))
            is_known = node_id is not None and sought.is_awaited and not self._is_capability(call)
            return self._source(call.index, sought.path, sought, node_id) if is_known else None
        if combinator(self._tree, call) is not None:
            return self._combined(call, sought)
        name = method_of(self._tree, call)
        if name in _OF_THE_SAME and sought.path[:1] == (None,):
            return sought.inside(call["function"]["object"], ())
        return None

    def _is_capability(self, call: Node) -> bool:
        """Whether a call by name is one of a capability."""
        given = call["arguments"].children[:1]
        name = json_value(self._origins, given[0]) if given else None
        is_by_name = isinstance(self._origins.of(call["function"]), CallByName)
        return is_by_name and str(name).startswith("cap:")

    def _combined(self, call: Node, sought: Sought) -> Sought | None:
        """Return the source of an element of what `Promise.all` resolves to."""
        is_own = self._origins.scopes.binding(call["function"]["object"]) is not None
        if is_own or not sought.is_awaited or combinator(self._tree, call) != "all":
            return None
        value, path = waited_for(self._tree, call, sought.path)
        if value is not call:
            return replace(sought, value=value, path=path)
        mapped = combined(call)
        if mapped is None or sought.path[:1] != (None,) or method_of(self._tree, mapped) != "map":
            return None
        given = mapped["arguments"].children
        function = given[0] if given else None
        is_written_there = function is not None and function.kind in INLINE_FUNCTIONS
        if function is None or not is_written_there or function.child("name") is not None:
            return None
        if not self._is_list(mapped["function"]["object"], sought.at):
            return None
        return self._returned(function, replace(sought, path=sought.path[1:]))

    def _is_list(self, node: Node, at: Instance) -> bool:
        """Whether a value with the method `map` is certainly a list."""
        if node.inner.kind == "array":
            return True
        key = (node.index, at.number)
        if key not in self._lists:
            self._lists[key] = False  # also where it is met again on the way
            if self._depth < _DEEPEST:
                self._depth += 1
                self._lists[key] = self._find(Sought(node, at, (None,))) is not None
                self._depth -= 1
        return self._lists[key]

    def _returned(self, function: Node, sought: Sought) -> Sought | None:
        """Return the one expression that a function returns on every path."""
        value = only_result(function)
        is_async = any(child.kind == "async" for child in function.children)
        if value is None or (is_async and not sought.is_awaited):
            return None
        return replace(sought, value=value)

    def _source(
        self, root: int, path: Path, sought: Sought, node_id: str | None = None
    ) -> Source | None:
        part = Rooted(root, path)
        set_ = self._changed.set_where_missing(part)
        if set_ is None or self._changed.may_hold(part) or (set_ and sought.default):
            return None
        default = sought.default or set_
        return None if default and node_id is not None else Source(path, node_id, default)
