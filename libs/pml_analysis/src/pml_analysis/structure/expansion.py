"""Expansion pass: local functions, inlined at their invocations.

An instance is one way a function is entered: by one invocation, itself in one instance of the
enclosing function. Instance 0 is the program. The calls of a function make nodes once per instance;
a recursive invocation enters the instance that is already running.
"""

import sys
from bisect import insort
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pml_analysis.structure.marks import Mark, MarkKind
from pml_analysis.structure.units import Unit
from pml_analysis.syntax.parser import TooDeep
from pml_analysis.syntax.tree import Node

Key = tuple[int, int]
"""A syntax node's index, and an instance."""

_MAX_DEPTH: Final = 100
"""Maximum depth of functions that invoke each other."""

_LETTERS: Final[dict[MarkKind, str]] = {"call": "n", "decision": "d", "loop": "l", "parallel": "f"}


class TooManyNodes(Exception):
    """The structure would have more nodes than a person can approve; `offset` is that of the first
    node beyond the bound."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"too many nodes at offset {offset}")
        self.offset = offset


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """One way a function is entered; `place` is the invocation, or the function itself where it is
    written and may have unknown callers. Unit, place and caller are None for the program."""

    number: int
    unit: Unit | None = None
    place: Node | None = None
    caller: "Instance | None" = None

    @property
    def is_invoked(self) -> bool:
        """Whether the invocation is known."""
        return self.unit is not None and self.place is not self.unit.function


@dataclass(frozen=True, slots=True)
class ExpandedNode:
    """A node: the syntax that makes it, and the instance; a local function makes the loop of an
    instance that enters itself. `joins` distinguishes the end of a parallel part from its
    beginning."""

    by: Mark | Unit
    instance: Instance
    joins: bool = False


@dataclass
class Expansion:
    """All instances and the nodes that they make.

    `nodes` by id, in source order with functions where they are entered; the rest are ids by their
    syntax: `ids` by syntax and instance, `joins` for forks, `loops` by recursive instance;
    `entered` the instance by the syntax that enters it.
    """

    instances: list[Instance] = field(default_factory=list[Instance])
    nodes: dict[str, ExpandedNode] = field(default_factory=dict[str, ExpandedNode])
    ids: dict[Key, str] = field(default_factory=dict[Key, str])
    joins: dict[Key, str] = field(default_factory=dict[Key, str])
    loops: dict[int, str] = field(default_factory=dict[int, str])
    entered: dict[Key, Instance] = field(default_factory=dict[Key, Instance])
    marks: Mapping[int | None, Sequence[Mark]] = field(default_factory=dict[int | None, list[Mark]])
    """By index of the function that they belong to; None: the program's own."""

    def enclosing(self, node: Node, instance: Instance) -> Instance:
        """Return the instance that syntax belongs to, seen from an inner one where it is in
        scope."""
        found = instance
        while found.unit is not None and not (
            found.unit.function.index <= node.index < found.unit.function.stop
        ):
            found = found.caller or found
        return found


def expand(marks: Sequence[Mark], *, limit: int) -> Expansion:
    """Enter every function at each of its invocations, and assign ids.

    Raises TooManyNodes beyond `limit`, TooDeep where functions invoke each other too far.
    """
    walk = _Walk(_owned(marks), limit)
    walk.enter(Instance(0), {}, 0)
    walk.number()
    return walk.expansion


def _owned(marks: Sequence[Mark]) -> dict[int | None, list[Mark]]:
    """Group marks by their innermost local function, in source order.

    Functions that only enter each other are placed where the first of them is written.
    """
    functions = {mark.unit.function.index: mark.unit for mark in marks if mark.unit is not None}
    owned: dict[int | None, list[Mark]] = {None: [], **{index: [] for index in functions}}
    for mark in marks:
        owned[_owner(mark.node, functions)].append(mark)
    reached: set[int | None] = set()
    _reach(None, owned, reached)
    for index in sorted(functions):
        if index not in reached:
            unit = functions[index]
            beside = owned[_owner(unit.function, functions)]
            insort(beside, Mark(unit.function, "written", unit), key=lambda mark: mark.node.index)
            _reach(index, owned, reached)
    return owned


def _owner(node: Node, functions: Container[int]) -> int | None:
    above = node.parent
    while above is not None and above.index not in functions:
        above = above.parent
    return None if above is None else above.index


def _reach(
    start: int | None, owned: Mapping[int | None, Sequence[Mark]], reached: set[int | None]
) -> None:
    waiting = [start]
    while waiting:
        function = waiting.pop()
        if function not in reached:
            reached.add(function)
            waiting += [mark.unit.function.index for mark in owned[function] if mark.unit]


class _Walk:
    def __init__(self, owned: Mapping[int | None, Sequence[Mark]], limit: int) -> None:
        self.expansion = Expansion(marks=owned)
        self._limit = limit
        self._count = 0
        self._made: list[ExpandedNode] = []
        self._recursive: set[int] = set()

    def enter(self, instance: Instance, running: Mapping[int, Instance], depth: int) -> None:
        """Visit the marks of an instance, and the instances it enters; `running` is by function."""
        unit = instance.unit
        self.expansion.instances.append(instance)
        if unit is not None:
            running = {**running, unit.function.index: instance}
            self._made.append(ExpandedNode(unit, instance))
        side_by_side: list[Mark] = []
        for mark in self.expansion.marks[None if unit is None else unit.function.index]:
            self._join(side_by_side, mark.node.index, instance)
            if mark.unit is not None:
                self._follow(mark, mark.unit, instance, running, depth)
                continue
            self._made.append(ExpandedNode(mark, instance))
            self._count += 1
            if self._count > self._limit:
                raise TooManyNodes(mark.node.start)
            if mark.kind == "parallel":
                side_by_side.append(mark)
        self._join(side_by_side, sys.maxsize, instance)

    def _join(self, side_by_side: list[Mark], before: int, instance: Instance) -> None:
        """Close parallel parts that end before an index."""
        while side_by_side and side_by_side[-1].node.stop <= before:
            self._made.append(ExpandedNode(side_by_side.pop(), instance, joins=True))

    def _follow(
        self,
        mark: Mark,
        unit: Unit,
        instance: Instance,
        running: Mapping[int, Instance],
        depth: int,
    ) -> None:
        key = (mark.node.index, instance.number)
        already = running.get(unit.function.index)
        if already is not None and mark.kind == "entry":
            self._recursive.add(already.number)
            self.expansion.entered[key] = already
            return
        if depth >= _MAX_DEPTH:
            raise TooDeep(mark.node.start)
        if len(self.expansion.instances) > self._limit:
            raise TooManyNodes(mark.node.start)
        fresh = Instance(len(self.expansion.instances), unit, mark.node, instance)
        self.expansion.entered[key] = fresh
        self.enter(fresh, running, depth + 1)

    def number(self) -> None:
        """Assign ids in the order of the visit, one counter per letter."""
        counts = dict.fromkeys("ndlf", 0)

        def fresh(letter: str) -> str:
            counts[letter] += 1
            return f"{letter}{counts[letter]}"

        found = self.expansion
        for made in self._made:
            mark, number = made.by, made.instance.number
            if isinstance(mark, Unit):
                if number not in self._recursive:
                    continue
                node_id = found.loops[number] = fresh("l")
            elif made.joins:
                node_id = found.joins[mark.node.index, number]
            else:
                key = (mark.node.index, number)
                node_id = found.ids[key] = fresh(_LETTERS[mark.kind])
                if mark.kind == "parallel":
                    found.joins[key] = f"j{counts['f']}"
            found.nodes[node_id] = made
