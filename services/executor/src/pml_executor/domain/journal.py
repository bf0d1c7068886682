"""A run's journal as the run itself sees it: what happened before, what happens now, in one order.

A program is deterministic once the order is fixed in which it gets its answers: its clock and its
chance are (runtime/worker). So answers are handed out in the journal's order, each one only after
everything that stands before it there has come about again. A first run is the case in which
nothing stands before.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pydantic import JsonValue

from pml_common.binding.fit import ActualCall
from pml_common.contracts.executor import ParkMark
from pml_common.contracts.tool import JsonObject, args_hash
from pml_common.contracts.trace import (
    CapabilityEnd,
    CapabilityStart,
    DecisionTaken,
    LogWritten,
    LoopPassed,
    ToolEnd,
    ToolStart,
    TraceEvent,
)

CallKey = tuple[str, int]
"""Node id and occurrence."""

_PATIENCE_MS = 5_000.0
_KINDS = {
    "loop": "a round",
    "decision": "a decision",
    "capability_start": "a capability",
    "capability_end": "the end of a capability",
}


class Diverged(Exception):
    """The program does not do what its own journal says it did."""

    def __init__(self, message: str, node_id: str | None) -> None:
        super().__init__(message)
        self.node_id = node_id


@dataclass(frozen=True)
class Call:
    """One call of one node; `start` is its entry if an earlier executor stored it."""

    node_id: str
    occurrence: int
    tool: str
    args: JsonObject
    args_hash: str
    start: ToolStart | None
    ended: bool

    @property
    def key(self) -> CallKey:
        """What identifies it within its run."""
        return self.node_id, self.occurrence

    @property
    def made(self) -> ActualCall:
        """The call as it is compared with what was approved."""
        return ActualCall(self.node_id, self.occurrence, self.tool, self.args, self.args_hash)


class RunJournal:
    """Numbers what the program does, matches it with what is recorded, and releases answers.

    `recorded` is what earlier executors stored, `add` takes what this one stores; `marks` tell when
    it was parked and when it went on. Raises Diverged.
    """

    def __init__(self, recorded: Sequence[TraceEvent] = (), marks: Sequence[ParkMark] = ()) -> None:
        self.entries: list[TraceEvent] = []
        self.marks = list(marks)
        self._results: dict[str, list[JsonValue]] = {}
        self.add(recorded)
        self._starts = {_key(e): e for e in recorded if isinstance(e, ToolStart)}
        self._ends = {_key(e) for e in recorded if isinstance(e, ToolEnd)}
        self._branches = {_key(e): e for e in recorded if isinstance(e, DecisionTaken)}
        nested = [e for e in recorded if e.parent_trace_id is not None]
        self._entrances = {_key(e): e for e in nested if isinstance(e, CapabilityStart)}
        self._exits = {e.trace_id for e in nested if isinstance(e, CapabilityEnd)}
        self._rounds = {_key(e) for e in recorded if isinstance(e, LoopPassed)}
        self._old_logs = sum(isinstance(e, LogWritten) for e in recorded)
        self._recorded = len(self.entries)
        self._called: Counter[str] = Counter()
        self._entered: Counter[str] = Counter()
        self._left: set[UUID] = set()
        self._decided: Counter[str] = Counter()
        self._begun: Counter[str] = Counter()
        self._logged = 0
        self._cursor = 0

    @property
    def closed(self) -> bool:
        """Whether the run has ended: the outermost capability has."""
        last = self.entries[-1] if self.entries else None
        return isinstance(last, CapabilityEnd) and last.parent_trace_id is None

    def call(self, node_id: str, tool: str, args: JsonObject) -> Call:
        """The program called a tool."""
        key = node_id, self._called[node_id]
        self._called[node_id] += 1
        digest = args_hash(args)
        start = self._starts.get(key)
        if start is not None and (start.tool, start.args_hash) != (tool, digest):
            with_other = "with other arguments" if start.tool == tool else f"as {start.tool}"
            raise Diverged(f"{_name(key)} calls {tool}; the journal has it {with_other}", node_id)
        return Call(*key, tool, args, digest, start, key in self._ends)

    def enter(
        self, node_id: str, capability: UUID, args: JsonObject
    ) -> tuple[int, CapabilityStart | None]:
        """The program called a capability; the occurrence, and its entry if it was recorded."""
        key = node_id, self._entered[node_id]
        self._entered[node_id] += 1
        known = self._entrances.get(key)
        if known is not None and (known.capability_id, known.args) != (capability, args):
            message = f"{_name(key)} calls another capability, or with other arguments, than"
            raise Diverged(f"{message} the journal has it", node_id)
        return key[1], known

    def leave(self, trace_id: UUID) -> bool:
        """A call of a capability ended; whether that is new."""
        self._left.add(trace_id)
        return trace_id not in self._exits

    def decide(self, node_id: str, outcome: str, times: int = 1) -> int | None:
        """The program took a branch; its occurrence (the last one's) if that is new, None if it
        was recorded."""
        self._decided[node_id] += times
        key = node_id, self._decided[node_id] - 1
        known = self._branches.get(key)
        if known is None:
            return key[1]
        if known.outcome != outcome:
            raise Diverged(
                f"{_name(key)} goes {outcome}; the journal has it {known.outcome}", node_id
            )
        return None

    def begin_round(self, node_id: str, times: int = 1) -> int | None:
        """The program began a round; its number (the last one's) if that is new, else None."""
        self._begun[node_id] += times
        begun = self._begun[node_id]
        return None if (node_id, begun - 1) in self._rounds else begun

    def log(self) -> bool:
        """The program wrote a line; whether it is new."""
        self._logged += 1
        return self._logged > self._old_logs

    def add(self, entries: Sequence[TraceEvent]) -> None:
        """These are stored now, after all others."""
        self.entries += entries
        for entry in entries:
            if isinstance(entry, ToolEnd) and entry.success:
                self._results.setdefault(entry.node_id or "", []).append(entry.result)

    def results(self, node_id: str) -> Sequence[JsonValue]:
        """The results of the calls of a node that succeeded so far."""
        return self._results.get(node_id, ())

    def due(self) -> list[ToolEnd]:
        """The outcomes that may now be handed to the program, in order."""
        released: list[ToolEnd] = []
        while self._cursor < len(self.entries):
            entry = self.entries[self._cursor]
            if not self._came_about(entry):
                break
            self._cursor += 1
            if isinstance(entry, ToolEnd):
                released.append(entry)
        return released

    def awaited(self) -> tuple[TraceEvent, float] | None:
        """The recorded entry that must come about next, and for how many milliseconds to wait:
        twice as long as it took the first time, and some more."""
        if not 0 < self._cursor < self._recorded:
            return None
        entry = self.entries[self._cursor]
        took = max(0.0, entry.ts - self.entries[self._cursor - 1].ts)  # by clocks that may differ
        return entry, 2 * took + _PATIENCE_MS

    def complete(self) -> None:
        """The program ended. Raises Diverged if it left out what the journal says it did."""
        for entry in self.entries[self._cursor : self._recorded]:
            if not self._came_about(entry):
                raise left_out(entry)

    def _came_about(self, entry: TraceEvent) -> bool:
        if isinstance(entry, ToolStart):
            return self._called[entry.node_id or ""] > entry.occurrence
        if isinstance(entry, DecisionTaken):
            return self._decided[entry.node_id or ""] > entry.occurrence
        if isinstance(entry, LoopPassed):
            return self._begun[entry.node_id or ""] > entry.occurrence
        if isinstance(entry, CapabilityStart) and entry.parent_trace_id is not None:
            return self._entered[entry.node_id or ""] > entry.occurrence
        if isinstance(entry, CapabilityEnd) and entry.parent_trace_id is not None:
            return entry.trace_id in self._left
        return True


def left_out(entry: TraceEvent) -> Diverged:
    """The program does not come to `entry`, which its journal holds."""
    what = entry.tool if isinstance(entry, ToolStart) else _KINDS[entry.type]
    return Diverged(
        f"the journal holds {_name(_key(entry))} ({what}), which the program no longer reaches",
        entry.node_id,
    )


def _key(entry: TraceEvent) -> CallKey:
    return entry.node_id or "", entry.occurrence


def _name(key: CallKey) -> str:
    return f"{key[0]} (time {key[1] + 1})"
