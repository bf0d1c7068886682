"""The executed path: what a run reported, folded until it can be read and compared.

Calls, decisions and rounds of loops, in the order they were reported, are a way through the
structure (forks, joins and a loop's last look report nothing), but one as long as the run. Leaving
out a whole round, from one report of its loop to the next, leaves a way through the structure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import NamedTuple

from pml_common.contracts.trace import (
    CapabilityStart,
    DecisionTaken,
    LoopPassed,
    ToolStart,
    TraceEvent,
)

MAX_LENGTH = 1_000
"""Nodes of a path; what follows is named once, in the order of its first time."""


_Report = ToolStart | CapabilityStart | DecisionTaken | LoopPassed
_REPORTS = (ToolStart, CapabilityStart, DecisionTaken, LoopPassed)


class Step(NamedTuple):
    """One report; `begins` tells a round of a loop from the rest."""

    node_id: str
    begins: bool = False


Round = tuple[Step, ...]


@dataclass
class _Loop:
    """A loop under way: its rounds so far, each once, and the round that is going on."""

    node_id: str | None
    ended: dict[Round, None] = field(default_factory=dict[Round, None])
    current: list[Step] = field(default_factory=list[Step])

    def begin(self, step: Step) -> None:
        """The next round."""
        self.ended[tuple(self.current)] = None
        self.current = [step]

    def folded(self) -> list[Step]:
        """All rounds; one that the last goes through, or goes beyond, is not told twice."""
        last = tuple(self.current)
        others = (each for each in self.ended if last[: len(each)] != each)
        return [*chain.from_iterable(others), *last]


def executed_path(entries: Iterable[TraceEvent]) -> tuple[str, ...]:
    """The way a run took: equal rounds of a loop once; `MAX_LENGTH` nodes, then new ones only.
    `entries` are what the program, or one call of a capability, did itself.

    Once a hot loop's reports are only counted, nobody knows their order any more: from there on
    each node stands at its first time.
    """
    reported = [entry for entry in entries if isinstance(entry, _REPORTS)]
    ordered = [*takewhile(lambda entry: not _is_counted(entry), reported)]
    path = [step.node_id for step in folded(map(_step, ordered))]
    rest = (_step(entry).node_id for entry in reported[len(ordered) :])
    return bounded(path[:MAX_LENGTH], chain(path[MAX_LENGTH:], rest))


def bounded(path: Sequence[str], rest: Iterable[str]) -> tuple[str, ...]:
    """The path, and of `rest` the nodes that are not yet in it."""
    known = set(path)
    return (*path, *(node for node in dict.fromkeys(rest) if node not in known))


def folded(steps: Iterable[Step]) -> list[Step]:
    """Each distinct round of a loop once, where it was gone through first, innermost loops first;
    the last round stands last, because what follows begins in it."""
    loops = [_Loop(None)]
    for step in _without_strands(steps):
        if not step.begins:
            loops[-1].current.append(step)
        elif any(loop.node_id == step.node_id for loop in loops):
            _end_loops_within(step.node_id, loops)
            loops[-1].begin(step)
        else:
            loops.append(_Loop(step.node_id, current=[step]))
    _end_loops_within(None, loops)
    return loops[0].current


def _end_loops_within(node_id: str | None, loops: list[_Loop]) -> None:
    while loops[-1].node_id != node_id:
        ended = loops.pop()
        loops[-1].current += ended.folded()


def _without_strands(steps: Iterable[Step]) -> Iterable[Step]:
    """One strand for many: what comes again although no round has begun in between was passed by
    several at once (or by a function that others call)."""
    passed: set[Step] = set()
    for step in steps:
        if step.begins:
            passed.clear()
        if step not in passed:
            passed.add(step)
            yield step


def _step(entry: _Report) -> Step:
    return Step(entry.node_id or "", isinstance(entry, LoopPassed))


def _is_counted(entry: _Report) -> bool:
    return isinstance(entry, DecisionTaken | LoopPassed) and entry.counted > 0
