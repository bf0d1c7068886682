"""Entries of a journal that are not stored yet, in order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pml_common.contracts.trace import TraceEvent


@dataclass
class EntryQueue:
    """Entries with their sizes in bytes of JSON; one append takes at most `max_bytes` of them, or
    one entry. `noted` counts all entries so far, `stored` those that are stored."""

    max_bytes: int
    noted: int = 0
    stored: int = 0
    _waiting: list[tuple[TraceEvent, int]] = field(default_factory=list[tuple[TraceEvent, int]])
    _bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Whether the entries of one append are waiting."""
        return self._bytes >= self.max_bytes

    @property
    def is_empty(self) -> bool:
        """Whether no entry is waiting to be taken."""
        return not self._waiting

    def put(self, entry: TraceEvent, size: int) -> None:
        """Add an entry at the end."""
        self._waiting.append((entry, size))
        self._bytes += size
        self.noted += 1

    def take(self) -> Sequence[TraceEvent]:
        """Remove and return the entries of the next append; none if none is waiting."""
        taken, total = list[TraceEvent](), 0
        for entry, size in self._waiting:
            if taken and total + size > self.max_bytes:
                break
            taken.append(entry)
            total += size
        del self._waiting[: len(taken)]
        self._bytes -= total
        return taken
