"""Output of the demo: numbered steps, their details, and checks that must pass."""

from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console, RenderableType
from rich.padding import Padding

from pml_cli.errors import CommandError
from pml_cli.markup import escape
from pml_cli.terminal import Terminal

PLAIN_WIDTH = 110
"""Columns when the output is no terminal: a log or a pipe."""
INDENT = 3


class DemoFailed(CommandError):
    """A step of the demo failed."""


class Narrator:
    """Prints steps as they happen and counts the checks that passed."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or _console()
        self.checks = 0
        self._steps = 0
        self._began = monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the demo began."""
        return monotonic() - self._began

    @contextmanager
    def step(self, title: str) -> Generator[None]:
        """Run one step: print its duration at the end; a failure names it."""
        self._steps += 1
        self.console.print(f"\n[bold]{self._steps:>2} {title}[/]")
        began = monotonic()
        try:
            yield
        except CommandError as error:
            raise DemoFailed(f"step {self._steps} ({title}): {error}") from error
        self.say(f"[dim]{monotonic() - began:.2f} s[/]")

    def say(self, *parts: RenderableType) -> None:
        """Print rich markup or a renderable."""
        for part in parts:
            self.console.print(Padding(part, (0, 0, 0, INDENT), expand=False))

    def check(self, holds: bool, fact: str, otherwise: object = "") -> None:
        """Print a fact that must hold; raises DemoFailed if it does not."""
        if not holds:
            detail = f": {otherwise}" if otherwise else ""
            raise DemoFailed(f"the check failed that {fact}{detail}")
        self.checks += 1
        self.say(f"[green]✓[/] {escape(fact)}")


def _console() -> Console:
    console = Terminal()
    return console if console.is_terminal else Terminal(width=PLAIN_WIDTH)
