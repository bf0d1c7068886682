"""Output: data to stdout, everything else to stderr."""

import json
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from pml_cli.markup import escape, is_terminal, write_line
from pml_common.text.visible import LAYOUT, visible

if TYPE_CHECKING:
    from rich.console import RenderableType


class Output:
    """Prints for people or, with `as_json`, one JSON document on stdout and nothing else."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def show(self, data: object, *readable: "RenderableType") -> None:
        """Print `data` as JSON, or its readable form; text lines are not wrapped, so that they can
        be copied in one piece."""
        if self.as_json:
            is_utf_8 = (sys.stdout.encoding or "").lower() == "utf-8"
            self.write(json.dumps(data, indent=2, ensure_ascii=not is_utf_8) + "\n")
            return
        for part in readable:
            if isinstance(part, str):
                write_line(sys.stdout, part)
            else:
                _lay_out(sys.stdout, part)

    def document(self, text: str) -> None:
        """Print a text to be stored, such as a program: raw, unless stdout is a terminal."""
        self.write(visible(text, LAYOUT) if is_terminal(sys.stdout) else text)

    def write(self, text: str) -> None:
        """Print text as it is and flush."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def remark(self, *readable: "RenderableType") -> None:
        """Print to stderr what belongs to no data."""
        for part in readable:
            if isinstance(part, str):
                write_line(sys.stderr, part)
            else:
                _lay_out(sys.stderr, part)

    def note(self, text: str) -> None:
        """Print a remark of plain text to stderr."""
        write_line(sys.stderr, f"[dim]{escape(text)}[/]")

    def remarks(self, texts: Iterable[str]) -> None:
        """Print remarks that JSON has in its document."""
        for text in () if self.as_json else texts:
            self.note(text)

    @contextmanager
    def busy(self, text: str) -> Generator[None]:
        """Show progress while waiting, on a terminal only."""
        if self.as_json or not is_terminal(sys.stderr):
            yield
            return
        from pml_cli.terminal import Terminal

        with Terminal(stderr=True).status(text):
            yield


def _lay_out(stream: TextIO, part: "RenderableType") -> None:
    from pml_cli.terminal import Terminal

    Terminal(stderr=stream is sys.stderr).print(part)
