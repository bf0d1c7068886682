"""Rendering of a stack's parts for `pml status`."""

from collections.abc import Mapping
from datetime import datetime

from pml_cli.markup import escape
from pml_local.state import PartDown, PartState


def part_lines(parts: Mapping[str, PartState]) -> list[str]:
    """The running parts in columns, one per line; none is cut, so that paths can be copied."""
    rows = [("part", "pid", "port", "log", "metrics")]
    rows += [
        (name, str(part.pid), str(part.port), str(part.log), part.metrics or "")
        for name, part in parts.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    head, *lines = (f" {escape(line)}" for line in padded)
    return [f"[bold]{head}[/]", *lines]


def down_line(name: str, down: PartDown, now: datetime) -> str:
    """A line on a part that is down: since when, why, and the next restart."""
    left = (down.next_try - now).total_seconds()
    again = f"next try in {left:.0f} s" if left >= 0.5 else "restarting now"
    since = down.since.astimezone().isoformat(sep=" ", timespec="seconds")
    times = f"{down.failures} failures in a row" if down.failures > 1 else "1 failure"
    return f"[red]{name} is down[/] since {since}: {escape(down.reason)}; {times}, {again}"
