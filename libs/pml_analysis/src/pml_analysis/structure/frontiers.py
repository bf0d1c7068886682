"""Frontiers: the open ends from which the edges pass draws the next edge."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pml_analysis.structure.flow import JumpKind


class Exit(NamedTuple):
    """An edge without its end. With a number for `node_id` it is a placeholder for the exits of a
    part that is still being built."""

    node_id: str | int
    type: Literal["sequence", "conditional", "loop_body"] = "sequence"
    outcome: str | None = None


Frontier = dict[Exit, None]
"""Everything after which the next node may come, in order and once each; empty: nothing before."""

Target = tuple[JumpKind, str | None]


@dataclass
class Exits:
    """The exits of a part: its end, unless that is never reached, and its jumps."""

    end: Frontier | None
    jumps: dict[Target, Frontier] = field(default_factory=dict[Target, Frontier])

    def land(self, *targets: Target) -> Frontier | None:
        """Turn the jumps to these targets into exits at the end."""
        landed = [self.jumps.pop(target) for target in targets if target in self.jumps]
        return merged(landed if self.end is None else [self.end, *landed])

    def left(self, entry: Frontier, *, certain: bool) -> "Exits":
        """Leave a function; one that is not known to be awaited throws nothing."""
        if not certain:
            return Exits(merged([entry, self.land(*self.jumps)]))
        thrown = self.jumps.pop(("throw", None), None)
        end = self.land(*self.jumps)
        return Exits(end, {} if thrown is None else {("throw", None): thrown})

    def take(self, *others: "Exits") -> None:
        """Add the jumps of other parts."""
        for other in others:
            for target, frontier in other.jumps.items():
                self.jumps[target] = {**self.jumps.get(target, {}), **frontier}


class Placeholders:
    """Exits that stand for others, which are known later."""

    def __init__(self) -> None:
        self._exits: list[Frontier] = []
        self._real: dict[str | int, Frontier] = {}

    def fresh(self) -> Exit:
        """Return a new, unresolved placeholder."""
        self._exits.append({})
        return Exit(len(self._exits) - 1)

    def resolve(self, placeholder: Exit, exits: Frontier | None) -> None:
        """Set the exits of a placeholder, which may contain unresolved placeholders."""
        self._exits[int(placeholder.node_id)] = exits or {}

    def real(self, exit_: Exit) -> Frontier:
        """Return the exits that one stands for, once everything is resolved."""
        if isinstance(exit_.node_id, str):
            return {exit_: None}
        known = self._real.get(exit_.node_id)
        if known is None:
            known = self._real[exit_.node_id] = self._follow(exit_.node_id)
        return known

    def _follow(self, start: int) -> Frontier:
        found: Frontier = {}
        seen = {start}
        waiting = list(self._exits[start])
        for exit_ in waiting:  # grows while it is read
            if isinstance(exit_.node_id, str):
                found[exit_] = None
            elif exit_.node_id not in seen:
                seen.add(exit_.node_id)
                waiting.extend(self._exits[exit_.node_id])
        return found


def merged(frontiers: Iterable[Frontier | None]) -> Frontier | None:
    """Merge the exits of several frontiers; None when none of them is reached."""
    found = [frontier for frontier in frontiers if frontier is not None]
    return {exit_: None for frontier in found for exit_ in frontier} if found else None
