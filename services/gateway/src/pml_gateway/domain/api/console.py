"""The console of a run in answers: its last lines, and pages of all that were kept."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from pml_common.contracts.base import Contract
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.trace import LogLine

MOST_LINES: Final = 200
MOST_BYTES: Final = 20_000
"""Bytes in UTF-8 of the lines in one answer; a line that alone has more is cut."""


class ShownConsole(NamedTuple):
    """The lines that an answer has room for, and the number of those written before them."""

    lines: tuple[LogLine, ...]
    omitted: int


class ConsolePage(Contract):
    """Lines of a program's console, in order. `total` lines were kept, after `lost` others that
    only the journal has; `offset` and `next_offset` count lines that were kept."""

    lines: tuple[LogLine, ...]
    offset: int
    total: int
    lost: int
    next_offset: int | None = None


def shown_console(run: RunFinished | WorkflowParked) -> ShownConsole:
    """Return the last lines of a run."""
    shown, room = list[LogLine](), MOST_BYTES
    for line in reversed(run.logs[-MOST_LINES:]):
        size = len(_encoded(line.message))
        if shown and size > room:
            break
        shown.append(line.model_copy(update={"message": _cut(line.message)}))
        room -= size
    return ShownConsole(tuple(reversed(shown)), run.logs_omitted + len(run.logs) - len(shown))


def console_notices(workflow_id: UUID, run: RunFinished | WorkflowParked) -> tuple[str, ...]:
    """Return a notice of the lines that an answer leaves out; none if it has them all."""
    shown = shown_console(run)
    if not shown.omitted:
        return ()
    total, kept = run.logs_omitted + len(run.logs), len(run.logs)
    which = "all" if kept == total else f"the last {kept:,}"
    return (
        f"the program wrote {total:,} lines to its console; the first {shown.omitted:,} are left "
        f"out of this answer, which has the last {len(shown.lines):,} ({MOST_LINES} lines and "
        f"{MOST_BYTES:,} bytes at most). pml_get_task_result with part: console, or GET "
        f"/api/workflows/{workflow_id}/console, returns {which} in pages",
    )


def console_page(run: RunFinished | WorkflowParked | None, offset: int, limit: int) -> ConsolePage:
    """Return a page of the lines that were kept; an empty one past their end."""
    lines: Sequence[LogLine] = run.logs if run else ()
    end = offset + limit
    return ConsolePage(
        lines=tuple(lines[offset:end]),
        offset=offset,
        total=len(lines),
        lost=run.logs_omitted if run else 0,
        next_offset=end if end < len(lines) else None,
    )


def _cut(message: str) -> str:
    encoded = _encoded(message)
    if len(encoded) <= MOST_BYTES:
        return message
    return f"{encoded[: MOST_BYTES - len(_encoded('…'))].decode('utf-8', 'ignore')}…"


def _encoded(message: str) -> bytes:
    return message.encode("utf-8", "replace")
