"""Rendering of a stack's parts for `pml status`."""

from collections.abc import Mapping
from datetime import datetime

from rich.markup import escape
from rich.table import Table

from pml_local.state import PartDown, PartState


def parts_table(parts: Mapping[str, PartState]) -> Table:
    """A table of the running parts."""
    table = Table("part", "pid", "port", "log", "metrics", box=None)
    for name, part in parts.items():
        table.add_row(name, str(part.pid), str(part.port), str(part.log), part.metrics or "")
    return table


def down_line(name: str, down: PartDown, now: datetime) -> str:
    """A line on a part that is down: since when, why, and the next restart."""
    left = (down.next_try - now).total_seconds()
    again = f"next try in {left:.0f} s" if left >= 0.5 else "restarting now"
    since = down.since.astimezone().isoformat(sep=" ", timespec="seconds")
    times = f"{down.failures} failures in a row" if down.failures > 1 else "1 failure"
    return f"[red]{name} is down[/] since {since}: {escape(down.reason)}; {times}, {again}"
