"""A terminal output that makes control characters visible.

Programs, tools and servers choose much of what is printed: names, results, errors. None of it may
move the cursor, change colours or titles, or reverse the text direction. Only `--json` is printed
raw.
"""

from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from pml_common.text.visible import LAYOUT, visible


class Terminal(Console):
    """A rich console that emits only its own styles and visible text."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False, emoji=False)
        self.push_render_hook(_AllVisible())

    def render_str(self, text: str, **options: Any) -> Text:
        """Build a text from a string with rich's markup."""
        return super().render_str(visible(text, LAYOUT), **options)


class _AllVisible(RenderHook):
    """Makes other renderables with raw characters visible."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Visible(each) for each in renderables]


class _Visible:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            yield segment if segment.control else _shown(segment)


def _shown(segment: Segment) -> Segment:
    return Segment(visible(segment.text, LAYOUT), segment.style)
