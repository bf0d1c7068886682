"""Output: data to stdout, everything else to stderr."""

import json
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import RenderableType

from pml_cli.terminal import Terminal
from pml_common.text.visible import LAYOUT, visible


class Output:
    """Prints for people or, with `as_json`, one JSON document on stdout and nothing else."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Terminal()
        self.notes = Terminal(stderr=True)

    def show(self, data: object, *readable: RenderableType) -> None:
        """Print `data` as JSON, or its readable form; text lines are not wrapped, so that they can
        be copied in one piece."""
        if self.as_json:
            is_utf_8 = self.console.encoding == "utf-8"
            self.write(json.dumps(data, indent=2, ensure_ascii=not is_utf_8) + "\n")
            return
        for part in readable:
            self.console.print(part, soft_wrap=isinstance(part, str))

    def document(self, text: str) -> None:
        """Print a text to be stored, such as a program: raw, unless stdout is a terminal."""
        self.write(visible(text, LAYOUT) if self.console.is_terminal else text)

    def write(self, text: str) -> None:
        """Print text as it is and flush."""
        self.console.file.write(text)
        self.console.file.flush()

    def note(self, text: str) -> None:
        """Print a remark to stderr."""
        self.notes.print(text, style="dim", soft_wrap=True, markup=False)

    @contextmanager
    def busy(self, text: str) -> Generator[None]:
        """Show progress while waiting, on a terminal only."""
        if self.as_json or not self.notes.is_terminal:
            yield
            return
        with self.notes.status(text):
            yield
