"""Edits that put text round ranges and keep every character of the author's."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Wrap:
    """Put `before` and `after` round a range; an empty range is an insertion."""

    start: int
    end: int
    before: str = ""
    after: str = ""


def apply(text: str, wraps: Iterable[Wrap]) -> str:
    """The text with all wraps in it: of two ranges that start or end together the wider is outside.

    Raises ValueError for ranges that cross or lie outside the text.
    """
    pieces: list[str] = []
    open_wraps: list[Wrap] = []
    position = 0

    def close(until: int) -> None:
        nonlocal position
        while open_wraps and open_wraps[-1].end <= until:
            last = open_wraps.pop()
            pieces.extend((text[position : last.end], last.after))
            position = last.end

    for wrap in sorted(wraps, key=_outermost_first):
        if not 0 <= wrap.start <= wrap.end <= len(text):
            raise ValueError(f"{wrap} lies outside a text of {len(text)} characters")
        close(wrap.start)
        if open_wraps and wrap.end > open_wraps[-1].end:
            raise ValueError(f"{wrap} crosses {open_wraps[-1]}")
        pieces.extend((text[position : wrap.start], wrap.before))
        position = wrap.start
        open_wraps.append(wrap)
    close(len(text))
    pieces.append(text[position:])
    return "".join(pieces)


def _outermost_first(wrap: Wrap) -> tuple[int, int, int]:
    """Sort by start, insertions first, then the widest."""
    return (wrap.start, 0 if wrap.start == wrap.end else 1, -wrap.end)
