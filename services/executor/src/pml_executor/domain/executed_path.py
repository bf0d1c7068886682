"""The executed path: the reports of a run, folded so that they can be read and compared.

Calls, decisions and rounds of loops, in the order they were reported, are a path through the
structure (forks, joins and a loop's last test report nothing), but one as long as the run. Leaving
out a whole round, from one report of its loop to the next, leaves a path through the structure.
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
"""Nodes of a path; of the rest, each new node is appended once, in order of first occurrence."""


_Report = ToolStart | CapabilityStart | DecisionTaken | LoopPassed
_REPORTS = (ToolStart, CapabilityStart, DecisionTaken, LoopPassed)


class Step(NamedTuple):
    """One report; `begins` is true for the start of a round of a loop."""

    node_id: str
    begins: bool = False


Round = tuple[Step, ...]


@dataclass
class _Loop:
    """A loop under way: its distinct ended rounds, and the current one."""

    node_id: str | None
    ended: dict[Round, None] = field(default_factory=dict[Round, None])
    current: list[Step] = field(default_factory=list[Step])

    def begin(self, step: Step) -> None:
        """Start the next round."""
        self.ended[tuple(self.current)] = None
        self.current = [step]

    def folded(self) -> list[Step]:
        """Return the steps of all distinct rounds; one that is a prefix of the last is left
        out."""
        last = tuple(self.current)
        others = (each for each in self.ended if last[: len(each)] != each)
        return [*chain.from_iterable(others), *last]


def executed_path(entries: Iterable[TraceEvent]) -> tuple[str, ...]:
    """Return the path of a run: equal rounds of a loop once; `MAX_LENGTH` nodes, then new ones
    only. `entries` are those of the program, or of one call of a capability, itself.

    Once a hot loop's reports are only counted, their order is unknown: from there on each node
    appears once, at its first occurrence.
    """
    reported = [entry for entry in entries if isinstance(entry, _REPORTS)]
    ordered = [*takewhile(lambda entry: not _is_counted(entry), reported)]
    path = [step.node_id for step in folded(map(_step, ordered))]
    rest = (_step(entry).node_id for entry in reported[len(ordered) :])
    return bounded(path[:MAX_LENGTH], chain(path[MAX_LENGTH:], rest))


def bounded(path: Sequence[str], rest: Iterable[str]) -> tuple[str, ...]:
    """Return the path, and the nodes of `rest` that are not yet in it."""
    known = set(path)
    return (*path, *(node for node in dict.fromkeys(rest) if node not in known))


def folded(steps: Iterable[Step]) -> list[Step]:
    """Keep each distinct round of a loop once, at its first occurrence, innermost loops first; the
    last round comes last, because what follows starts from it."""
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
    """Merge parallel strands into one: a step repeated without the start of a round in between was
    passed by several strands (or by a function called several times)."""
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
