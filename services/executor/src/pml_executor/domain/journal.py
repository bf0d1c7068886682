"""A run's journal and its replay: recorded entries and new ones, in one order.

A program is deterministic once the order of its answers is fixed: its clock and its random numbers
are (runtime/worker). So answers are released in the journal's order, each one only after the
program has reached everything that precedes it there. A first run is the case without recorded
entries.
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

_REPLAY_GRACE_MS = 5_000.0
_KINDS = {
    "loop": "a round",
    "decision": "a decision",
    "capability_start": "a capability",
    "capability_end": "the end of a capability",
}


class Diverged(Exception):
    """The program deviates from its journal."""

    def __init__(self, message: str, node_id: str | None) -> None:
        super().__init__(message)
        self.node_id = node_id


@dataclass(frozen=True)
class Call:
    """One call of one node; `start` is its journal entry if an earlier executor stored it."""

    node_id: str
    occurrence: int
    tool: str
    args: JsonObject
    args_hash: str
    start: ToolStart | None
    ended: bool

    @property
    def key(self) -> CallKey:
        """The key of the call within its run."""
        return self.node_id, self.occurrence

    @property
    def made(self) -> ActualCall:
        """The call in the form that is compared with what was approved."""
        return ActualCall(self.node_id, self.occurrence, self.tool, self.args, self.args_hash)


class RunJournal:
    """Numbers the program's actions, matches them with the recorded entries, and releases answers.

    `recorded` are the entries that earlier executors stored, `add` takes those that this one
    stores; `marks` record when the run was parked and when it went on. Raises Diverged.
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
        """Whether the run has ended, by the end of the outermost capability."""
        last = self.entries[-1] if self.entries else None
        return isinstance(last, CapabilityEnd) and last.parent_trace_id is None

    def call(self, node_id: str, tool: str, args: JsonObject) -> Call:
        """Number and match a tool call of the program."""
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
        """Number and match a call of a capability; return its occurrence, and its entry if that is
        recorded."""
        key = node_id, self._entered[node_id]
        self._entered[node_id] += 1
        known = self._entrances.get(key)
        if known is not None and (known.capability_id, known.args) != (capability, args):
            message = f"{_name(key)} calls another capability, or with other arguments, than"
            raise Diverged(f"{message} the journal has it", node_id)
        return key[1], known

    def leave(self, trace_id: UUID) -> bool:
        """Register the end of a call of a capability; return whether that is new."""
        self._left.add(trace_id)
        return trace_id not in self._exits

    def decide(self, node_id: str, outcome: str, times: int = 1) -> int | None:
        """Number and match a decision; return its occurrence (of the last of `times`) if that is
        new, None if it is recorded."""
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
        """Number a round of a loop; return its number (of the last of `times`) if that is new, None
        if it is recorded."""
        self._begun[node_id] += times
        begun = self._begun[node_id]
        return None if (node_id, begun - 1) in self._rounds else begun

    def log(self) -> bool:
        """Count a log line; return whether it is new."""
        self._logged += 1
        return self._logged > self._old_logs

    def add(self, entries: Sequence[TraceEvent]) -> None:
        """Add entries that are now stored, after all others."""
        self.entries += entries
        for entry in entries:
            if isinstance(entry, ToolEnd) and entry.success:
                self._results.setdefault(entry.node_id or "", []).append(entry.result)

    def results(self, node_id: str) -> Sequence[JsonValue]:
        """Return the results of the successful calls of a node so far."""
        return self._results.get(node_id, ())

    def due(self) -> list[ToolEnd]:
        """Release the outcomes that the program may now receive, in order."""
        released: list[ToolEnd] = []
        while self._cursor < len(self.entries):
            entry = self.entries[self._cursor]
            if not self._was_reached(entry):
                break
            self._cursor += 1
            if isinstance(entry, ToolEnd):
                released.append(entry)
        return released

    def awaited(self) -> tuple[TraceEvent, float] | None:
        """Return the recorded entry that the program must reach next, and the milliseconds to wait
        for it: twice as long as it took the first time, and some more."""
        if not 0 < self._cursor < self._recorded:
            return None
        entry = self.entries[self._cursor]
        took = max(0.0, entry.ts - self.entries[self._cursor - 1].ts)  # by clocks that may differ
        return entry, 2 * took + _REPLAY_GRACE_MS

    def complete(self) -> None:
        """Check the journal at the program's end. Raises Diverged if a recorded entry was not
        reached."""
        for entry in self.entries[self._cursor : self._recorded]:
            if not self._was_reached(entry):
                raise not_reached(entry)

    def _was_reached(self, entry: TraceEvent) -> bool:
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


def not_reached(entry: TraceEvent) -> Diverged:
    """Build the error for a recorded entry that the program does not reach."""
    what = entry.tool if isinstance(entry, ToolStart) else _KINDS[entry.type]
    return Diverged(
        f"the journal holds {_name(_key(entry))} ({what}), which the program no longer reaches",
        entry.node_id,
    )


def _key(entry: TraceEvent) -> CallKey:
    return entry.node_id or "", entry.occurrence


def _name(key: CallKey) -> str:
    return f"{key[0]} (time {key[1] + 1})"
