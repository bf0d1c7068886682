"""The console of a program."""

from collections.abc import Mapping
from typing import Final, cast

from pml_cli.markup import escape

_STYLES: Final = {"debug": "dim", "info": "cyan", "warn": "yellow", "error": "red"}


def console_lines(answer: Mapping[str, object]) -> list[str]:
    """One line for each that the program wrote, after one for those before them."""
    lines = cast(list[Mapping[str, str]], answer.get("logs") or [])
    before, workflow = answer.get("logs_omitted"), answer.get("workflow_id")
    where = f": pml trace {workflow} --as console" if workflow else ""
    first = [f"[dim]… {before} earlier lines of the console{where}[/]"] if before else []
    return first + [line_of(line) for line in lines]


def line_of(line: Mapping[str, str]) -> str:
    """One line, with its level in its colour."""
    level = line["level"]
    return f"[{_STYLES.get(level, 'dim')}]{escape(level)}[/] {escape(line['message'])}"
