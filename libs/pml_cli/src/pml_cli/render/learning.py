"""Rendering of learned paths: counts, success rates with intervals, and the dominant path."""

from rich.table import Table

from pml_cli.render.path import path_line
from pml_cli.render.use import interval_text
from pml_cli.render.values import milliseconds
from pml_common.contracts.capability import Learning


def learned_paths(learning: Learning) -> Table:
    """One row per path, the dominant one marked."""
    table = Table(title="learned paths", title_justify="left")
    for heading, justify in (("path", "left"), ("runs", "right"), ("success", "right")):
        table.add_column(heading, justify="left" if justify == "left" else "right")
    table.add_column("moving mean", justify="right")
    table.add_column("")
    for path in learning.paths:
        dominant = path.path == learning.dominant_path
        table.add_row(
            path_line(path.path),
            str(path.count),
            interval_text(path.success_rate, path.low, path.high),
            milliseconds(path.mean_duration_ms),
            "dominant" if dominant else "",
            style="bold" if dominant else "",
        )
    return table
