"""A run's journal as stored: complete, or with its first fault."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pml_common.bus import names
from pml_common.bus.errors import Unreadable
from pml_common.bus.port import Journal, StoredMessage
from pml_common.contracts.executor import JournalAppend, ParkMark, TraceRecorded, WorkflowParked
from pml_common.contracts.grant import JournalKind
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import TraceEvent

OWNER: Final = "executor"
"""The service whose events about a workflow are the appends of its journal."""

_NEVER: Final = 2**63
Append = tuple[int, JournalAppend]
"""An append and its sequence in the stream."""


@dataclass(frozen=True)
class StoredRun:
    """The readable part of a journal, the sequence of its `last` message, and its first fault, if
    any. Messages that are `foreign`, as forgeries are, are no part of it and hinder nobody."""

    appends: tuple[Append, ...]
    last: int
    broken: Unreadable | None
    foreign: tuple[Unreadable, ...] = ()

    @property
    def entries(self) -> Sequence[TraceEvent]:
        """All readable entries, in order."""
        return [entry for _, append in self.appends for entry in append.entries]

    @property
    def fault(self) -> str | None:
        """The first fault in words."""
        return self.broken and f"append {self.broken.sequence}: {self.broken.why}"

    def require_whole(self) -> None:
        """Raise Unreadable if the journal has a fault."""
        if self.broken is not None:
            raise self.broken


async def read_run(
    journal: Journal, scope: Scope, workflow_id: UUID, kind: JournalKind
) -> StoredRun:
    """Read a journal of this kind, complete or not. Raises BusUnavailable."""
    appends, before, broken, foreign = list[Append](), 0, list[Unreadable](), list[Unreadable]()
    found = await journal.salvage(OWNER, scope, str(workflow_id))
    unsigned = _unsigned_until(found, kind)
    for each in found:
        append = each.message if isinstance(each, StoredMessage) else each.unsigned
        counts = isinstance(each, StoredMessage) or each.sequence < unsigned
        if counts and isinstance(append, JournalAppend):
            gap = _gap(append.previous, before)
            if gap is not None:
                broken.append(Unreadable(subjects_of(scope, workflow_id), each.sequence, gap))
            appends.append((each.sequence, append))
        elif isinstance(each, Unreadable):
            (foreign if each.is_foreign else broken).append(each)
        before = each.sequence
    return StoredRun(tuple(appends), before, broken[0] if broken else None, tuple(foreign))


def _unsigned_until(found: Sequence[StoredMessage | Unreadable], kind: JournalKind) -> int:
    """Return the sequence from which no unsigned append counts: this release's first one, or the
    last park before it."""
    if kind == "signed":
        return 0
    believed = [each for each in found if isinstance(each, StoredMessage)]
    ours = (each.sequence for each in believed if isinstance(each.message, TraceRecorded))
    first = next(ours, _NEVER)
    if kind == "unsigned":
        return first
    parks = (each.sequence for each in believed if isinstance(each.message, WorkflowParked))
    return max((park for park in parks if park < first), default=0)


def subjects_of(scope: Scope, workflow_id: UUID) -> str:
    """Return the filter for the appends of one run."""
    return names.events_filter(OWNER, scope, str(workflow_id))


def mark_of(append: JournalAppend) -> ParkMark | None:
    """Return what an append says of the run's parking, if anything."""
    if isinstance(append, WorkflowParked):
        return ParkMark(
            command_id=append.command_id, ts=append.ts, wanted=append.wanted, beside=append.beside
        )
    return append.mark if isinstance(append, TraceRecorded) else None


def _gap(previous: int | None, before: int) -> str | None:
    """Return why an append does not follow the message before it: the fence lets none be stored out
    of order."""
    if previous in (None, before):
        return None
    follows = f"append {previous}" if previous else "nothing"
    there = f"append {before}" if before else "nothing"
    return f"it was stored after {follows}, and {there} precedes it now"
