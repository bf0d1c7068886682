"""Recognises reported paths that are paths through a structure.

Steps that run one after the other are one strand. At a fork it becomes a group: a strand for each
edge that leaves the fork, or for a fork over items any number. They run side by side and meet at
the join of the fork's number: all of them for `all`; the first for `race` and `any`, after which
the others may continue inside; for `allSettled` a strand may end anywhere, by an error. An edge out
of the part between fork and join is an error: it leaves the group, and the others may continue
inside.

Forks, joins and a loop's last test are silent.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pml_common.contracts.structure import StaticStructure
from services.analyzer.tests.paths.marking import Group, Marking, Stack, Strand
from services.analyzer.tests.paths.net import Net, Place

Step = tuple[str, str | None]
"""A reported node, and the outcome of a decision."""

_MAX_MARKINGS: Final = 1_000
"""Maximum number of markings followed at once."""

_MAX_GROUPS: Final = 50
_PATIENCE: Final = 40_000
"""Maximum number of silent moves tried for one path."""

_Move = tuple[Marking, Place, Stack]
"""A marking without the strand that moves, and the position of that strand."""


class TooManyWays(Exception):
    """A path has too many readings."""


def first_wrong_step(structure: StaticStructure, path: Sequence[Step]) -> int | None:
    """Return the position of the first step that no marking accepts; None where the path is
    accepted.

    Rounds of a method like `map` may overlap, where its callback waits; that is tried last. Raises
    TooManyWays.
    """
    net = Net(structure)
    wrong = _Reading(net, overlapping=False).first_wrong(path)
    return wrong if wrong is None else _Reading(net, overlapping=True).first_wrong(path)


class _Reading:
    def __init__(self, net: Net, *, overlapping: bool) -> None:
        self._net = net
        self._overlapping = overlapping
        self._patience = _PATIENCE

    def first_wrong(self, path: Sequence[Step]) -> int | None:
        markings = {Marking()}
        for position, (node_id, outcome) in enumerate(path):
            vertex = self._net.reported(node_id)
            found: set[Marking] = set()
            for marking in markings:
                for after in self._step(marking, vertex, outcome or ""):
                    found.add(after.tidy(self._is_over))
                    if len(found) > _MAX_MARKINGS:
                        raise TooManyWays
            if not found:
                return position
            markings = found
        return None

    def _step(self, marking: Marking, vertex: str, outcome: str) -> Iterator[Marking]:
        """Return the markings after one more report."""
        for move in self._movers(marking, vertex):
            for before, stack in self._silently(move, vertex):
                yield before.with_strand(Strand((vertex, outcome), stack))
                if self._overlapping and self._net.may_overlap(vertex):
                    yield self._overlapped(before, vertex, stack)

    def _overlapped(self, before: Marking, vertex: str, stack: Stack) -> Marking:
        """Begin a round that no other waits for."""
        marking, number = before.opened(vertex, stack, is_closed=True)
        marking = marking.with_strand(Strand((vertex.removesuffix("+"), ""), stack))
        return marking.with_strand(Strand((vertex, ""), (*stack, number)))

    def _movers(self, marking: Marking, goal: str, inside: Stack = ()) -> Iterator[_Move]:
        """Yield every strand in these groups that may move to a vertex, or begin and move there."""
        for strand in dict.fromkeys(marking.strands):
            if strand.stack[: len(inside)] == inside and self._net.leads(strand.place, goal):
                yield marking.without(strand), strand.place, strand.stack
        for group in marking.groups:
            if group.inner[: len(inside)] == inside:
                yield from self._from_group(marking, group.number, goal)

    def _from_group(self, marking: Marking, number: int, goal: str) -> Iterator[_Move]:
        """Begin a strand of a group; or join all that began."""
        group = marking[number]
        if not self._net.is_fork(group.fork):
            return
        for start in self._net.next((group.fork, "")):
            if not self._net.leads((group.fork, start), goal):
                continue
            if self._net.is_repeated(group.fork, start):
                yield marking, (group.fork, start), group.inner
            elif start not in group.used:
                yield marking.used(number, start), (group.fork, start), group.inner
        if not group.is_closed and self._net.leads((self._net.join_of(group.fork), ""), goal):
            yield from self._met(marking, number, arrived=False)

    def _is_over(self, group: Group) -> bool:
        """Whether no strand of a group can begin any more."""
        starts = self._net.next((group.fork, "")) if self._net.is_fork(group.fork) else ()
        return all(
            start in group.used and not self._net.is_repeated(group.fork, start) for start in starts
        )

    def _silently(self, move: _Move, goal: str) -> Iterator[tuple[Marking, Stack]]:
        """Yield the silent paths of a strand to a vertex; with the marking without it."""
        waiting, seen = [move], {move}
        while waiting:
            marking, place, stack = waiting.pop()
            for vertex in self._net.next(place):
                left = self._left(marking, stack, vertex)
                if left is None:
                    continue
                self._patience -= 1
                if self._patience < 0:
                    raise TooManyWays
                if vertex == goal:
                    yield left
                if not self._net.leads((vertex, ""), goal):
                    continue
                for further in self._through(*left, vertex, goal):
                    if further not in seen:
                        seen.add(further)
                        waiting.append(further)

    def _left(self, marking: Marking, stack: Stack, vertex: str) -> tuple[Marking, Stack] | None:
        """Return the groups that a strand is still in when it comes to a vertex; None: it
        cannot."""
        while stack:
            group = marking[stack[-1]]
            fork = group.fork
            if vertex in self._net.region(fork) or vertex == self._net.join_of(fork):
                break
            if group.is_closed:
                return None
            marking, stack = marking.closed(group.number), stack[:-1]
        return marking, stack

    def _through(self, marking: Marking, stack: Stack, vertex: str, goal: str) -> Iterator[_Move]:
        """Pass a vertex that is not reported."""
        if self._net.is_loop(vertex):
            yield marking, (vertex, ""), stack
        elif self._net.is_fork(vertex):
            if len(marking.groups) > _MAX_GROUPS:
                raise TooManyWays
            opened, number = marking.opened(vertex, stack)
            yield from self._from_group(opened, number, goal)
        elif self._net.is_join(vertex) and stack:
            group = marking[stack[-1]]
            if vertex == self._net.join_of(group.fork) and not group.is_closed:
                yield from self._met(marking, group.number, arrived=True)

    def _met(self, marking: Marking, number: int, *, arrived: bool) -> Iterator[_Move]:
        """Continue the strand that waits at the join."""
        group = marking[number]
        after = ((self._net.join_of(group.fork), ""), group.stack)
        kind = self._net.kind(group.fork)
        if kind == "all":
            for found in self._all_there(marking, number):
                yield found, *after
        elif kind == "allSettled":
            yield marking.without_ended(number).ended(number), *after
        elif arrived:
            yield marking.closed(number).tidy(self._is_over), *after

    def _all_there(self, marking: Marking, number: int) -> Iterator[Marking]:
        """Return the markings in which every strand of a group has come to its join."""
        group = marking[number]
        join = self._net.join_of(group.fork)
        strands, groups = marking.children(number)
        if strands:
            first = strands[0]
            moves = [(marking.without(first), first.place, first.stack)]
        elif groups:
            moves = list(self._movers(marking, join, groups[0].inner))
        else:
            missing = self._net.missing(group.fork, group.used)
            if not missing:
                yield marking.ended(number)
                return
            start = missing[0]
            moves = [(marking.used(number, start), (group.fork, start), group.inner)]
        for move in moves:
            for found, stack in self._silently(move, join):
                if stack == group.inner:
                    yield from self._all_there(found, number)
