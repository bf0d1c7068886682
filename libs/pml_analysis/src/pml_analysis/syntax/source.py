"""The submitted text and positions in it."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

LINE_END = re.compile("\r\n|[\n\r\u2028\u2029]")
_ODD_END = re.compile("[\r\u2028\u2029]")


class Position(NamedTuple):
    """A position as people count it: both from 1, columns in code points (not UTF-16 units)."""

    line: int
    column: int


class Source:
    """A text with offsets in code points; lines end as in JavaScript. `inserted` are its spans
    `[start, end)`, in order and without a line end, that the author did not write: positions and
    lines are those of the text without them, or of the `written` one, which is as long: that of
    the author where ranges of it were replaced."""

    def __init__(
        self, text: str, inserted: Sequence[tuple[int, int]] = (), written: str | None = None
    ) -> None:
        self.text = text
        self.inserted = tuple(inserted)
        self.written = written

    @property
    def authors(self) -> str:
        """The text that the author wrote."""
        return self._authors.text

    @cached_property
    def _authors(self) -> "Source":
        """The text without what was inserted."""
        if self.written is not None:
            return Source(self.written)
        if not self.inserted:
            return self
        parts: list[str] = []
        position = 0
        for start, end in self.inserted:
            parts.append(self.text[position:start])
            position = end
        return Source("".join((*parts, self.text[position:])))

    @cached_property
    def _starts(self) -> list[int]:
        if _ODD_END.search(self.text) is None:  # most texts: much faster
            return [0, *accumulate(len(line) + 1 for line in self.text.split("\n")[:-1])]
        return [0, *(match.end() for match in LINE_END.finditer(self.text))]

    @property
    def line_count(self) -> int:
        """The number of lines; an empty text has one."""
        return len(self._starts)

    def position(self, offset: int) -> Position:
        """Return the position of an offset; of one in an insertion that of what follows."""
        if self.inserted:
            return self._authors.position(self._authors_offset(offset))
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def authors_part(self, start: int, end: int) -> str:
        """Return the author's text of a range."""
        return self.authors[self._authors_offset(start) : self._authors_offset(end)]

    def _authors_offset(self, offset: int) -> int:
        before = (min(end, offset) - start for start, end in self.inserted if start < offset)
        return offset - sum(before)

    def at(self, position: Position) -> int:
        """Return the offset of a position that counts what was inserted, too."""
        return self._starts[position.line - 1] + position.column - 1

    def offset(self, line: int, units: int) -> int:
        """Return the offset of a position in other units: the line from 1, in it UTF-16 units from
        0; both count what was inserted."""
        text = self._line(line)
        if not text.isascii():
            units = len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore"))
        return self._starts[line - 1] + min(units, len(text))

    def line(self, number: int) -> str:
        """Return the author's text of one line, without its end."""
        return self._authors._line(number)

    def _line(self, number: int) -> str:
        start = self._starts[number - 1]
        found = LINE_END.search(self.text, start)
        return self.text[start : found.start() if found else len(self.text)]
