"""The submitted text and positions in it."""

import re
from bisect import bisect_right
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
    """A text with offsets in code points; lines end as in JavaScript."""

    def __init__(self, text: str) -> None:
        self.text = text

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
        """Return the position of an offset."""
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def offset(self, line: int, units: int) -> int:
        """Return the offset of a position in other units: the line from 1, in it UTF-16 units from
        0."""
        text = self.line(line)
        if not text.isascii():
            units = len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore"))
        return self._starts[line - 1] + min(units, len(text))

    def line(self, number: int) -> str:
        """Return the text of one line, without its end."""
        start = self._starts[number - 1]
        found = LINE_END.search(self.text, start)
        return self.text[start : found.start() if found else len(self.text)]
