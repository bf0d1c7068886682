"""Edits of a text that keep the positions of the author's: insertions around ranges, and
replacements of ranges by texts of the same length and insertions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pml_analysis.syntax.source import LINE_END

_TEXT: Final = re.compile("[^\n\r\u2028\u2029]")


@dataclass(frozen=True)
class Wrap:
    """Put `before` and `after` around a range; an empty range is an insertion."""

    start: int
    end: int
    before: str = ""
    after: str = ""


class Replacement(NamedTuple):
    """Another text for a range; for an empty range, an insertion."""

    start: int
    end: int
    text: str


class Edited(NamedTuple):
    """A text after edits; `insertions` are the inserted spans, in order, one for each piece:
    without them it is the original, or as long where ranges were replaced."""

    text: str
    insertions: tuple[tuple[int, int], ...]


def apply(text: str, wraps: Iterable[Wrap], *, first: str = "") -> Edited:
    """Return the text with `first` before it and all wraps in it: of two ranges that start or end
    together the wider is outside.

    Raises ValueError for ranges that cross or lie outside the text.
    """
    writing = _Writing()
    writing.insert(first)
    open_wraps: list[Wrap] = []
    position = 0

    def close(until: int) -> None:
        nonlocal position
        while open_wraps and open_wraps[-1].end <= until:
            last = open_wraps.pop()
            writing.keep(text[position : last.end])
            writing.insert(last.after)
            position = last.end

    for wrap in sorted(wraps, key=_outermost_first):
        if not 0 <= wrap.start <= wrap.end <= len(text):
            raise ValueError(f"{wrap} lies outside a text of {len(text)} characters")
        close(wrap.start)
        if open_wraps and wrap.end > open_wraps[-1].end:
            raise ValueError(f"{wrap} crosses {open_wraps[-1]}")
        writing.keep(text[position : wrap.start])
        writing.insert(wrap.before)
        position = wrap.start
        open_wraps.append(wrap)
    close(len(text))
    writing.keep(text[position:])
    return Edited("".join(writing.pieces), tuple(writing.insertions))


def overwritten(text: str, replacements: Iterable[Replacement]) -> Edited:
    """Return the text with disjoint ranges replaced and every other character at its position:
    blanks fill a range up, what exceeds its first line is inserted there, its line ends stay."""
    writing = _Writing()
    position = 0
    for start, end, new in sorted(replacements):
        old = text[start:end]
        line_end = LINE_END.search(old)
        room = line_end.start() if line_end is not None else len(old)
        writing.keep(text[position:start] + new[:room])
        writing.insert(new[room:])
        writing.keep(_TEXT.sub(" ", old[min(room, len(new)) :]))
        position = end
    writing.keep(text[position:])
    return Edited("".join(writing.pieces), tuple(writing.insertions))


@dataclass
class _Writing:
    pieces: list[str] = field(default_factory=list[str])
    insertions: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    length: int = 0

    def keep(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def insert(self, text: str) -> None:
        if text:
            self.insertions.append((self.length, self.length + len(text)))
            self.keep(text)


def _outermost_first(wrap: Wrap) -> tuple[int, int, int]:
    """Sort by start, insertions first, then the widest."""
    return (wrap.start, 0 if wrap.start == wrap.end else 1, -wrap.end)


def composed(edited: Edited, earlier: Iterable[tuple[int, int]]) -> Edited:
    """Return a text that was edited twice with the insertions of both times; `earlier` are the
    spans, in the text before the last edits, that the first ones inserted."""
    position = before = 0
    both = list(edited.insertions)
    end_of_text = len(edited.text)
    for start, end in (*edited.insertions, (end_of_text, end_of_text)):
        shift, until = position - before, before + start - position
        both += [
            (max(first, before) + shift, min(last, until) + shift)
            for first, last in earlier
            if max(first, before) < min(last, until)
        ]
        position, before = end, until
    return Edited(edited.text, tuple(sorted(both)))
