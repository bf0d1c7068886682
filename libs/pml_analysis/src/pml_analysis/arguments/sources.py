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
from pml_analysis.arguments.parameter_binding import BoundArgument, ParameterBindings, gets_element
from pml_analysis.arguments.parameter_paths import DEFAULTING
from pml_analysis.arguments.roots import ARGUMENTS, RootedPart, awaited_element
from pml_analysis.arguments.value_parts import (
    Extraction,
    ValuePart,
    data_key,
    data_path,
    is_iterated,
    is_of_callback,
    is_same_in_rest,
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

_MAX_STEPS: Final = 100
_MAX_DEPTH: Final = 20
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
        self,
        origins: Origins,
        expansion: Expansion,
        parameter_bindings: ParameterBindings,
        changed: Changed,
    ) -> None:
        self._origins = origins
        self._tree = origins.tree
        self._expansion = expansion
        self._bindings = parameter_bindings
        self._changed = changed
        self._known: dict[tuple[int, int], Source | None] = {}
        self._lists: dict[tuple[int, int], bool] = {}
        self._depth = 0

    def of(self, node: Node, at: Instance) -> Source | None:
        """Return the certain source of a value."""
        key = (node.index, at.number)
        if key not in self._known:
            self._known[key] = self._find(ValuePart(node, at))
        return self._known[key]

    def _find(self, part: ValuePart) -> Source | None:
        following: ValuePart | Source | None = part
        for _ in range(_MAX_STEPS):
            if not isinstance(following, ValuePart):
                return following
            following = self._step(following)
        return None

    def _step(self, part: ValuePart) -> ValuePart | Source | None:
        node = part.value.inner
        if node.kind in USE_NAMES:
            return self._named(node, part)
        if node.kind in MEMBERS:
            key = data_key(self._origins.key(node))
            return None if key is None else part.inside(node.children[0], (key,))
        match node.kind:
            case "await_expression" if node.operand is not None:
                return replace(part, value=node.operand, is_awaited=True)
            case "call_expression":
                return self._called(node, part)
            case "binary_expression" if node["operator"].kind in DEFAULTING:
                return self._or_default(part, node["left"], node["right"])
            case _:
                return None

    def _or_default(self, part: ValuePart, value: Node, default: Node) -> ValuePart | None:
        """Return the source of a value with a known default."""
        known = json_value(self._origins, default)
        if known == [] and part.path[:1] == (None,):  # it has no elements
            return replace(part, value=value)
        is_known = known is not None or default.inner.kind == "null"
        if not is_known or part.path or part.default:
            return None
        return replace(part, value=value, default=(known,))

    def _named(self, name: Node, part: ValuePart) -> ValuePart | Source | None:
        binding = self._origins.scopes.binding(name)
        if binding is None:
            origin = self._origins.of(name)
            if not isinstance(origin, FromArguments):
                return None
            return self._source(ARGUMENTS, (*origin.path, *part.path), part)
        given = self._bindings.argument(binding.node, part.at)
        where = self._expansion.enclosing(binding.node, part.at)
        if given is not None:
            return self._bound(given, binding, where, part)
        return self._assigned(binding, replace(part, at=where))

    def _bound(
        self, given: BoundArgument, binding: Binding, where: Instance, part: ValuePart
    ) -> ValuePart | None:
        """Return the source of the argument that a known invocation passes to a parameter."""
        place = where.place
        if place is None or binding.node.above.kind == "rest_pattern":
            return None
        taken: Extraction = "value" if place.kind == "call_expression" else "resolved"
        path = given.path
        if taken == "resolved" and gets_element(self._tree, place):
            taken, path = "element", path[1:]
        rest = data_path(path)
        if rest is None:
            return None
        part = replace(part, at=given.at)
        if given.default is not None:
            return None if path else self._or_default(part, given.value, given.default)
        return part.of(given.value, rest, taken)

    def _assigned(self, binding: Binding, part: ValuePart) -> ValuePart | None:
        """Return the source of a name that is assigned once."""
        values = [one for one in binding.parts if not one.is_default]
        defaults = [one for one in binding.parts if one.is_default]
        value = values[0].value if len(values) == 1 else None
        if binding.starts_absent or value is None or len(defaults) > 1:
            return None
        name = binding.node
        if name.above.kind == "rest_pattern" and not is_same_in_rest(self._tree, name, part.path):
            return None
        for default in defaults:
            if default.path or default.value is None:
                return None
            within = self._or_default(part, value, default.value)
            if within is None:
                return None
            part = within
        return self._taken_from(binding, value, values[0].path, part)

    def _taken_from(
        self, binding: Binding, value: Node, path: Path, part: ValuePart
    ) -> ValuePart | None:
        taken: Extraction = "value"
        if binding.kind == "parameter":
            if not is_of_callback(binding.node):
                return None
            is_element = method_of(self._tree, value.above.above) in ELEMENT_OF
            taken = "element" if is_element else "resolved"
        elif is_iterated(binding, value):
            taken = "element"
        rest = data_path(path[1:] if taken == "element" else path)
        return None if rest is None else part.of(value, rest, taken)

    def _called(self, call: Node, part: ValuePart) -> ValuePart | Source | None:
        at = self._expansion.enclosing(call, part.at)
        part = replace(part, at=at)
        entered = self._expansion.entered.get((call.index, at.number))
        if entered is not None and entered.unit is not None:
            return self._returned(entered.unit.function, replace(part, at=entered))
        if isinstance(self._origins.of(call["function"]), FromTools | CallByName):
            node_id = self._expansion.ids.get((call.index, at.number))
            is_known = node_id is not None and part.is_awaited and not self._is_capability(call)
            return self._source(call.index, part.path, part, node_id) if is_known else None
        if combinator(self._tree, call) is not None:
            return self._combined(call, part)
        name = method_of(self._tree, call)
        if name in _OF_THE_SAME and part.path[:1] == (None,):
            return part.inside(call["function"]["object"], ())
        return None

    def _is_capability(self, call: Node) -> bool:
        """Whether a call by name is one of a capability."""
        given = call["arguments"].children[:1]
        name = json_value(self._origins, given[0]) if given else None
        is_by_name = isinstance(self._origins.of(call["function"]), CallByName)
        return is_by_name and str(name).startswith("cap:")

    def _combined(self, call: Node, part: ValuePart) -> ValuePart | None:
        """Return the source of an element of what `Promise.all` resolves to."""
        is_own = self._origins.scopes.binding(call["function"]["object"]) is not None
        if is_own or not part.is_awaited or combinator(self._tree, call) != "all":
            return None
        value, path = awaited_element(self._tree, call, part.path)
        if value is not call:
            return replace(part, value=value, path=path)
        mapped = combined(call)
        if mapped is None or part.path[:1] != (None,) or method_of(self._tree, mapped) != "map":
            return None
        given = mapped["arguments"].children
        function = given[0] if given else None
        is_written_there = function is not None and function.kind in INLINE_FUNCTIONS
        if function is None or not is_written_there or function.child("name") is not None:
            return None
        if not self._is_list(mapped["function"]["object"], part.at):
            return None
        return self._returned(function, replace(part, path=part.path[1:]))

    def _is_list(self, node: Node, at: Instance) -> bool:
        """Whether a value with the method `map` is certainly a list."""
        if node.inner.kind == "array":
            return True
        key = (node.index, at.number)
        if key not in self._lists:
            self._lists[key] = False  # ends a list that refers to itself
            if self._depth < _MAX_DEPTH:
                self._depth += 1
                self._lists[key] = self._find(ValuePart(node, at, (None,))) is not None
                self._depth -= 1
        return self._lists[key]

    def _returned(self, function: Node, part: ValuePart) -> ValuePart | None:
        """Return the one expression that a function returns on every path."""
        value = only_result(function)
        is_async = any(child.kind == "async" for child in function.children)
        if value is None or (is_async and not part.is_awaited):
            return None
        return replace(part, value=value)

    def _source(
        self, root: int, path: Path, part: ValuePart, node_id: str | None = None
    ) -> Source | None:
        rooted = RootedPart(root, path)
        set_ = self._changed.set_where_missing(rooted)
        if set_ is None or self._changed.may_hold(rooted) or (set_ and part.default):
            return None
        default = part.default or set_
        return None if default and node_id is not None else Source(path, node_id, default)
