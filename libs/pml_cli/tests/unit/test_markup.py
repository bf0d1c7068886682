"""Lines with markup are written as rich writes them."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.markup import escape as rich_escape

from pml_cli.markup import escape, write_line

STYLES = ("bold", "dim", "red", "green", "yellow", "magenta", "cyan", "bold red")
TEXTS = st.text("ab \\[]/#@=1é\n", max_size=12)
LINES = st.recursive(
    TEXTS.map(rich_escape),
    lambda inner: st.tuples(st.sampled_from(STYLES), inner, inner).map(
        lambda parts: f"[{parts[0]}]{parts[1]}[/]{parts[2]}"
    ),
    max_leaves=6,
)


class Shown(io.StringIO):
    """A stream that keeps what is written, and may be a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@given(text=st.text())
def test_a_text_is_escaped_as_by_rich(text: str) -> None:
    assert escape(text) == rich_escape(text)


@given(line=LINES)
def test_without_a_terminal_a_line_is_the_text_that_rich_writes(line: str) -> None:
    ours, theirs = Shown(is_terminal=False), Shown(is_terminal=False)
    write_line(ours, line)
    Console(file=theirs, highlight=False, emoji=False).print(line, soft_wrap=True)
    assert ours.getvalue() == theirs.getvalue()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Shown:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Shown(is_terminal=True)


NESTED = "a [bold]b [red]c[/] \\[d] [dim]e[/][/] f [bold red]g[/]"


def by_rich(markup: str) -> str:
    theirs = Shown(is_terminal=True)
    Console(file=theirs, highlight=False, emoji=False).print(markup, soft_wrap=True)
    return theirs.getvalue()


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"NO_COLOR": "1"},
        {"TERM": "dumb"},
        {"TERM": "xterm-256color"},
        {"FORCE_COLOR": ""},
        {"FORCE_COLOR": "1"},
        {"TTY_COMPATIBLE": "0"},
        {"TTY_COMPATIBLE": "1"},
    ],
    ids=lambda chosen: str(chosen),
)
def test_styles_are_those_of_rich_on_every_terminal(
    terminal: Shown, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    write_line(terminal, NESTED)
    assert terminal.getvalue() == by_rich(NESTED)


def test_control_characters_are_shown_as_text(terminal: Shown) -> None:
    write_line(terminal, "[red]\x1b[2J[/]")
    assert terminal.getvalue() == "\x1b[31m\\x1b[2J\x1b[0m\n"
