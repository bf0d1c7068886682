"""Marks pass: the syntax that makes nodes.

Calls, and decisions about calls: every if and switch, and every loop, try, conditional expression
and short circuit with a call in it. A function or loop that makes no call and cannot leave the
program only computes and makes no node.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pml_analysis.names.callbacks import given_function, looping_method, method_of
from pml_analysis.names.choices import arms, is_plain
from pml_analysis.names.origins import Origins
from pml_analysis.structure.calls import Calls
from pml_analysis.structure.units import Unit, has_implicit_calls
from pml_analysis.syntax.node_kinds import (
    BRANCHES,
    EXITS,
    FUNCTIONS,
    INLINE_FUNCTIONS,
    JUMPS,
    LOOPS,
    SHORT_CIRCUITS,
)
from pml_analysis.syntax.tree import Node, Tree

MarkKind = Literal["call", "decision", "loop", "parallel", "entry", "written"]

Combinator = Literal["all", "allSettled", "race", "any"]
_COMBINATORS: Final[dict[str, Combinator]] = {
    "all": "all",
    "allSettled": "allSettled",
    "any": "any",
    "race": "race",
}


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """Syntax that makes a node, or (`entry`, `written`) inlines the nodes of a local function:
    where it is invoked, and where it is written."""

    node: Node
    kind: MarkKind
    unit: Unit | None = None


class Places:
    """Positions of some syntax, for range queries."""

    def __init__(self, indexes: Iterable[int]) -> None:
        self._indexes = sorted(indexes)

    def within(self, node: Node) -> bool:
        """Whether this node contains any."""
        first = bisect_left(self._indexes, node.index)
        return first < len(self._indexes) and self._indexes[first] < node.stop


def find_marks(tree: Tree, origins: Origins, calls: Calls, units: Sequence[Unit]) -> list[Mark]:
    """Return every mark, in source order."""
    direct = [*(site.call.index for site in calls.sites), *(node.index for node in calls.dynamic)]
    calling = _calling(units, direct)
    places = Places([*direct, *(entry.index for unit in calling for entry in unit.entries)])
    finder = _Finder(tree, origins, places)
    marks = [
        *(Mark(site.call, "call") for site in calls.sites),
        *(Mark(entry, "entry", unit) for unit in calling for entry in unit.entries),
        *(Mark(unit.function, "written", unit) for unit in calling if unit.is_loose),
        *(Mark(node, "decision") for node in finder.decisions()),
        *(Mark(node, "loop") for node in finder.loops()),
        *(Mark(node, "parallel") for node in finder.parallels()),
    ]
    return sorted(marks, key=lambda mark: mark.node.index)


def _calling(units: Sequence[Unit], direct: Iterable[int]) -> list[Unit]:
    """Return the local functions that make calls, directly or through each other."""
    places = Places(direct)
    by_function = {unit.function.index: unit for unit in units}
    found = {unit for unit in units if places.within(unit.function)}
    fresh = list(found)
    while fresh:
        for entry in fresh.pop().entries:
            for outer in _around(entry, by_function):
                if outer not in found:
                    found.add(outer)
                    fresh.append(outer)
    return [unit for unit in units if unit in found]


def _around(node: Node, units: Mapping[int, Unit]) -> Iterator[Unit]:
    above = node.parent
    while above is not None:
        if above.index in units:
            yield units[above.index]
        above = above.parent


class _Finder:
    def __init__(self, tree: Tree, origins: Origins, places: Places) -> None:
        self._tree = tree
        self._origins = origins
        self._places = places
        self._leaving = Places(
            node.index
            for node in tree.of(*JUMPS)
            if node.kind in EXITS or node.child("label") is not None
        )
        self._computing = self._computing_regions()

    def _computing_regions(self) -> list[tuple[int, int]]:
        """Return the outermost functions and loops that only compute, as ranges of indexes."""
        regions: list[tuple[int, int]] = []
        end = 0
        found = self._tree.of(*FUNCTIONS, *LOOPS)
        for node in sorted(found, key=lambda node: node.index):
            if node.index >= end and not self._makes_nodes(node):
                regions.append((node.index, node.stop))
                end = node.stop
        return regions

    def _makes_nodes(self, node: Node) -> bool:
        if self._places.within(node):
            return True
        return node.kind in LOOPS and self._leaving.within(node)

    def _only_computes(self, node: Node) -> bool:
        at = bisect_left(self._computing, (node.index + 1, 0)) - 1
        return at >= 0 and node.index < self._computing[at][1]

    def decisions(self) -> list[Node]:
        tree, calls = self._tree, self._places.within
        return [
            *(node for node in tree.of(*BRANCHES) if not self._only_computes(node)),
            *(node for node in tree.of("ternary_expression") if any(map(calls, arms(node)))),
            *(node for node in tree.of(*SHORT_CIRCUITS) if self._is_short_circuit(node)),
            *(node for node in tree.of("try_statement") if self._is_attempt(node)),
        ]

    def _is_short_circuit(self, node: Node) -> bool:
        if not arms(node) or not self._places.within(node["right"]):
            return False
        if node.kind == "binary_expression" or node["left"].inner.kind == "identifier":
            return True
        return is_plain(node["left"]) and not has_implicit_calls(self._tree)  # it is read twice

    def _is_attempt(self, node: Node) -> bool:
        handler = node.child("handler")
        return handler is not None and (
            self._places.within(node["body"]) or self._places.within(handler)
        )

    def loops(self) -> list[Node]:
        return [
            *(node for node in self._tree.of(*LOOPS) if not self._only_computes(node)),
            *(node for node in self._tree.of("call_expression") if self._is_method_loop(node)),
        ]

    def _is_method_loop(self, call: Node) -> bool:
        if not self._places.within(call) or looping_method(self._tree, call) is None:
            return False
        function = given_function(self._tree, call)
        if function is None or not runs_calls(function, self._places):
            return False
        return not self._is_combined(call)

    def _is_combined(self, call: Node) -> bool:
        """Whether it is `Promise.all(items.map(…))`: a fork, not a loop."""
        given = call
        while given.above.kind == "parenthesized_expression":
            given = given.above
        outer = given.above.above if given.above.kind == "arguments" else None
        return outer is not None and self._is_parallel(outer) and combined(outer) is call

    def parallels(self) -> list[Node]:
        return [node for node in self._tree.of("call_expression") if self._is_parallel(node)]

    def _is_parallel(self, call: Node) -> bool:
        if not self._places.within(call) or combinator(self._tree, call) is None:
            return False
        if self._origins.scopes.binding(call["function"]["object"]) is not None:
            return False
        given = combined(call)
        if given is None or given.kind == "array":
            return given is not None and self._places.within(given)
        function = given_function(self._tree, given)
        is_map = given.kind == "call_expression" and method_of(self._tree, given) == "map"
        return is_map and function is not None and runs_calls(function, self._places)


def runs_calls(function: Node, places: Places) -> bool:
    """Whether a callback is an inline or local function that makes calls."""
    inner = function.inner
    is_known = inner.kind in INLINE_FUNCTIONS or inner.kind == "identifier"
    return is_known and places.within(function)


def combinator(tree: Tree, call: Node) -> Combinator | None:
    """Return `all` for `Promise.all(…)`, and so on."""
    name = method_of(tree, call) if call.kind == "call_expression" else None
    found = _COMBINATORS.get(name or "")
    owner = call["function"]["object"] if found is not None else None
    is_promise = owner is not None and owner.kind == "identifier" and tree.name(owner) == "Promise"
    return found if is_promise else None


def combined(call: Node) -> Node | None:
    """Return the only argument of `Promise.all`, without parentheses."""
    given = call["arguments"].children
    return given[0].inner if len(given) == 1 else None
