"""The console of a program."""

from collections.abc import Mapping
from typing import Final, cast

from pml_cli.markup import escape

_STYLES: Final = {"debug": "dim", "info": "cyan", "warn": "yellow", "error": "red"}


def console_lines(answer: Mapping[str, object]) -> list[str]:
    """One line for each that the program wrote, after one for those before them."""
    lines = cast(list[Mapping[str, str]], answer.get("logs") or [])
    before = answer.get("logs_omitted")
    first = [f"[dim]… {before} earlier lines of the console[/]"] if before else []
    return first + [
        f"[{_STYLES.get(line['level'], 'dim')}]{escape(line['level'])}[/] {escape(line['message'])}"
        for line in lines
    ]
