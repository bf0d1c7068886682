"""The lines that a program wrote to its console, as they are kept for its caller."""

from collections.abc import Sequence
from typing import Final

from pml_common.contracts.trace import LogLine, LogWritten, TraceEvent

MOST_BYTES: Final = 256 * 1024
"""Bytes of the JSON of all lines that are kept; the sandbox cuts each line at 10,000 characters."""


def last_lines(entries: Sequence[TraceEvent]) -> tuple[tuple[LogLine, ...], int]:
    """Return the last lines of a journal that fit into `MOST_BYTES`, and the number of those before
    them, which only the journal has."""
    written = [entry for entry in entries if isinstance(entry, LogWritten)]
    kept, room = list[LogLine](), MOST_BYTES
    for entry in reversed(written):
        line = LogLine(level=entry.level, message=entry.message)
        room -= len(line.model_dump_json().encode()) + 1  # the comma
        if room < 0:
            break
        kept.append(line)
    return tuple(reversed(kept)), len(written) - len(kept)
