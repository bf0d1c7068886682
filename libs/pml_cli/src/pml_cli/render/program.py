"""Rendering of the program of an approval, as it will run."""

from collections.abc import Sequence
from typing import cast

from pml_cli.client import Json
from pml_cli.markup import escape


def program_lines(approval: Json, *, full: bool = False) -> list[str]:
    """Lines with the changes to the program that was sent, and with the text that runs, where that
    is another one or `full` asks for it."""
    notices = cast(Sequence[str], approval.get("notices") or ())
    lines = [f"  [yellow]changed[/] {escape(notice)}" for notice in notices]
    code = approval.get("code")
    if code is None or not (notices or full):
        return lines
    text = [f"    {escape(line)}" for line in str(code).splitlines()]
    return [*lines, "  [dim]what runs[/]", *text]
