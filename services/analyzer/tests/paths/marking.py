"""The positions of the strands of a run."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from services.analyzer.tests.paths.net import START, Place

Stack = tuple[int, ...]
"""The groups that a strand is in, outermost first."""


@dataclass(frozen=True, slots=True, order=True)
class Strand:
    """A position that moves."""

    place: Place
    stack: Stack = ()


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Strands side by side since a fork. `used`: the edges along which they began. `is_closed`:
    nothing waits for them any more."""

    number: int
    fork: str
    stack: Stack
    used: tuple[str, ...] = ()
    is_closed: bool = False

    @property
    def inner(self) -> Stack:
        """Return the stack of its strands."""
        return (*self.stack, self.number)


@dataclass(frozen=True, slots=True)
class Marking:
    """All strands and groups, sorted."""

    strands: tuple[Strand, ...] = (Strand(START),)
    groups: tuple[Group, ...] = ()

    def __getitem__(self, number: int) -> Group:
        return next(group for group in self.groups if group.number == number)

    def with_strand(self, strand: Strand) -> "Marking":
        """Add a strand."""
        return replace(self, strands=tuple(sorted((*self.strands, strand))))

    def without(self, strand: Strand) -> "Marking":
        """Remove a strand."""
        at = self.strands.index(strand)
        return replace(self, strands=self.strands[:at] + self.strands[at + 1 :])

    def opened(self, fork: str, stack: Stack, *, is_closed: bool = False) -> tuple["Marking", int]:
        """Add a group; return its number too."""
        numbers = {group.number for group in self.groups}
        number = next(n for n in range(len(numbers) + 1) if n not in numbers)
        group = Group(number, fork, stack, is_closed=is_closed)
        return replace(self, groups=tuple(sorted((*self.groups, group)))), number

    def changed(self, group: Group) -> "Marking":
        """Replace the group of that number."""
        groups = (group if one.number == group.number else one for one in self.groups)
        return replace(self, groups=tuple(groups))

    def used(self, number: int, start: str) -> "Marking":
        """Record that a strand of a group began along this edge."""
        group = self[number]
        return self.changed(replace(group, used=tuple(sorted((*group.used, start)))))

    def closed(self, number: int) -> "Marking":
        """Close a group: nothing waits for it any more."""
        return self.changed(replace(self[number], is_closed=True))

    def ended(self, number: int) -> "Marking":
        """End a group; other strands inside it may continue."""
        if any(number in one.stack for one in (*self.strands, *self.groups)):
            return self.closed(number)
        return replace(self, groups=tuple(g for g in self.groups if g.number != number))

    def tidy(self, is_over: Callable[[Group], bool]) -> "Marking":
        """Remove closed groups in which nothing can happen, or that equal another."""
        busy = {number for one in (*self.strands, *self.groups) for number in one.stack}
        kept: dict[Group, Group] = {}
        for group in self.groups:
            if group.number in busy or not group.is_closed:
                kept[group] = group
            elif not is_over(group):
                kept.setdefault(replace(group, number=-1), group)
        return replace(self, groups=tuple(kept.values()))

    def without_ended(self, number: int) -> "Marking":
        """Remove the strands of a group that have ended, not those of inner groups."""
        inner = self[number].inner
        return replace(self, strands=tuple(s for s in self.strands if s.stack != inner))

    def children(self, number: int) -> tuple[list[Strand], list[Group]]:
        """Return the strands of a group: as such, or as the groups that they became."""
        inner = self[number].inner
        strands = [strand for strand in self.strands if strand.stack == inner]
        return strands, [g for g in self.groups if g.stack == inner and not g.is_closed]
