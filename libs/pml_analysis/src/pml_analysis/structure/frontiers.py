"""Frontiers: what the edges pass knows of the places that the next edge leaves from."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pml_analysis.structure.flow import JumpKind


class Exit(NamedTuple):
    """An edge that still looks for its end. With a number for `node_id` it is a placeholder: it
    stands for the exits of something that is still being drawn."""

    node_id: str | int
    type: Literal["sequence", "conditional", "loop_body"] = "sequence"
    outcome: str | None = None


Frontier = dict[Exit, None]
"""Everything after which the next node may come, in order and once each; empty: nothing before."""

Target = tuple[JumpKind, str | None]


@dataclass
class Exits:
    """How a part is left: by its end, unless that is never reached, or by jumps."""

    end: Frontier | None
    jumps: dict[Target, Frontier] = field(default_factory=dict[Target, Frontier])

    def land(self, *targets: Target) -> Frontier | None:
        """Where the jumps to these targets join the end; they are jumps no more."""
        landed = [self.jumps.pop(target) for target in targets if target in self.jumps]
        return merged(landed if self.end is None else [self.end, *landed])

    def left(self, entry: Frontier, *, certain: bool) -> "Exits":
        """Out of a function; from one that nobody is known to wait for, nothing is thrown."""
        if not certain:
            return Exits(merged([entry, self.land(*self.jumps)]))
        thrown = self.jumps.pop(("throw", None), None)
        end = self.land(*self.jumps)
        return Exits(end, {} if thrown is None else {("throw", None): thrown})

    def take(self, *others: "Exits") -> None:
        """Leave by the jumps of other parts too."""
        for other in others:
            for target, frontier in other.jumps.items():
                self.jumps[target] = {**self.jumps.get(target, {}), **frontier}


class Placeholders:
    """Exits that stand for others, which are known later."""

    def __init__(self) -> None:
        self._meant: list[Frontier] = []
        self._real: dict[str | int, Frontier] = {}

    def fresh(self) -> Exit:
        """A placeholder that stands for nothing yet."""
        self._meant.append({})
        return Exit(len(self._meant) - 1)

    def resolve(self, placeholder: Exit, exits: Frontier | None) -> None:
        """Say what a placeholder stands for; placeholders among it may be resolved later."""
        self._meant[int(placeholder.node_id)] = exits or {}

    def real(self, exit_: Exit) -> Frontier:
        """What an exit stands for, once everything is drawn."""
        if isinstance(exit_.node_id, str):
            return {exit_: None}
        known = self._real.get(exit_.node_id)
        if known is None:
            known = self._real[exit_.node_id] = self._follow(exit_.node_id)
        return known

    def _follow(self, start: int) -> Frontier:
        found: Frontier = {}
        seen = {start}
        waiting = list(self._meant[start])
        for meant in waiting:  # grows while it is read
            if isinstance(meant.node_id, str):
                found[meant] = None
            elif meant.node_id not in seen:
                seen.add(meant.node_id)
                waiting.extend(self._meant[meant.node_id])
        return found


def merged(frontiers: Iterable[Frontier | None]) -> Frontier | None:
    """All exits of several frontiers; None when none of them is reached."""
    found = [frontier for frontier in frontiers if frontier is not None]
    return {exit_: None for frontier in found for exit_ in frontier} if found else None
