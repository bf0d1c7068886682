"""A run's journal as stored: complete, or with its first fault."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pml_common.bus import names
from pml_common.bus.errors import Unreadable
from pml_common.bus.port import Journal, StoredMessage
from pml_common.contracts.catalog import TRACE_RECORDED
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import TraceEvent

Append = tuple[int, TraceRecorded]
"""An append and its sequence in the stream."""


@dataclass(frozen=True)
class StoredRun:
    """The readable part of a journal, and its first `fault`, if any."""

    appends: tuple[Append, ...]
    fault: str | None

    @property
    def entries(self) -> Sequence[TraceEvent]:
        """All readable entries, in order."""
        return [entry for _, append in self.appends for entry in append.entries]

    @property
    def last(self) -> tuple[int, TraceRecorded | None]:
        """The sequence of the last readable append, and the append; (0, None) without one."""
        return self.appends[-1] if self.appends else (0, None)


async def read_run(journal: Journal, scope: Scope, workflow_id: UUID) -> StoredRun:
    """Read a journal, complete or not. Raises BusUnavailable."""
    found = await journal.salvage(TRACE_RECORDED, scope, str(workflow_id))
    appends = _appends(found)
    faults = [(each.sequence, each.why) for each in found if isinstance(each, Unreadable)]
    faults += [gap] if (gap := _gap(appends)) is not None else []
    first = min(faults, default=None)
    return StoredRun(appends, None if first is None else f"append {first[0]}: {first[1]}")


def require_whole(records: Sequence[StoredMessage], scope: Scope, workflow_id: UUID) -> None:
    """Raise Unreadable if an append of a run is missing before another."""
    gap = _gap(_appends(records))
    if gap is not None:
        subject = names.subject_of(TRACE_RECORDED, scope, str(workflow_id))
        raise Unreadable(subject, *gap)


def _appends(records: Sequence[StoredMessage | Unreadable]) -> tuple[Append, ...]:
    return tuple(
        (each.sequence, each.message)
        for each in records
        if isinstance(each, StoredMessage) and isinstance(each.message, TraceRecorded)
    )


def _gap(appends: Sequence[Append]) -> tuple[int, str] | None:
    """Find the first append that does not follow its predecessor, with the reason; the fenced
    append lets none be stored out of order."""
    before = 0
    for sequence, append in appends:
        if append.previous is not None and append.previous != before:
            follows = f"append {append.previous}" if append.previous else "nothing"
            there = f"append {before}" if before else "nothing"
            return sequence, f"it was stored after {follows}, and {there} precedes it now"
        before = sequence
    return None
