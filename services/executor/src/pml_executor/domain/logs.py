"""The lines that a program wrote to its console, for the answer to its caller."""

from collections.abc import Sequence
from typing import Final

from pml_common.contracts.trace import LogLine, LogWritten, TraceEvent

MOST_LINES: Final = 200
MOST_CHARACTERS: Final = 20_000


def last_lines(entries: Sequence[TraceEvent]) -> tuple[tuple[LogLine, ...], int]:
    """Return the last lines of a journal, as many as an answer has room for, and the number of
    those before them. A line that alone is too long is cut."""
    written = [entry for entry in entries if isinstance(entry, LogWritten)]
    kept, room = list[LogLine](), MOST_CHARACTERS
    for entry in reversed(written[-MOST_LINES:]):
        if kept and len(entry.message) > room:
            break
        kept.append(LogLine(level=entry.level, message=_cut(entry.message)))
        room -= len(entry.message)
    return tuple(reversed(kept)), len(written) - len(kept)


def _cut(message: str) -> str:
    return message if len(message) <= MOST_CHARACTERS else f"{message[: MOST_CHARACTERS - 1]}…"
