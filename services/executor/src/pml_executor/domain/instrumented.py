"""Translation of errors from the instrumented text to the author's: positions and quotations.

The analyzer reports its insertions. V8 knows the instrumented text alone: its positions count in
it, and some of its messages quote it (`__pml.at(...) is not a function`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pml_common.contracts.executor import RunWorkflow

Span = tuple[int, int]
"""`[start, end)` in code points."""

_LINE_END = re.compile("\r\n|[\n\r]")
"""Line ends by which the sandbox counts lines."""
_AUTHORS_LINE_END = re.compile("\r\n|[\n\r\u2028\u2029]")
"""Line ends of JavaScript, by which the analyzer counts lines."""

_LAST_WORD = re.compile(r"[\w$#]+[)!\s]*\Z")
_LAST_BRACKETS = re.compile(r"[)!\s]*")
_METHOD = re.compile(r"__pml[._](\w+)\(")
_QUOTED = re.compile(r"__pml\.(at|via|decide|absent|last|subject)\b(?:\(\.\.\.\))?")
_NO_CODE = re.compile(
    r"""("(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*` | //[^\n]* | /\*.*?\*/)""",
    re.VERBOSE | re.DOTALL,
)
_MAX_WORDS = 80
_NEAR = 2_000
"""Maximum characters between a call and an error about it, which bounds the time of a search in a
large program."""


class _Wrap(NamedTuple):
    """Two insertions that belong together, around a part of the author's text."""

    opening: Span
    closing: Span
    method: str | None


@dataclass(frozen=True)
class Instrumented:
    """The text of a program that runs, and the spans of it that its author did not write, in
    order."""

    text: str
    insertions: Sequence[Span] = ()

    @classmethod
    def of(cls, command: RunWorkflow) -> "Instrumented":
        """Return the program of a run."""
        return cls(command.instrumented, command.insertions)

    def offset(self, line: int, column: int) -> int | None:
        """Return the offset in `text` of a position from the sandbox; line and column count from 1,
        columns in UTF-16 units. None for a line that does not exist. The bracket of a call becomes
        the one that its callee ends with, where a transpiler's source map has it."""
        ends = [0, *(match.end() for match in _LINE_END.finditer(self.text)), len(self.text)]
        if not 1 <= line < len(ends):
            return None
        start = ends[line - 1]
        units = 0
        for index, character in enumerate(self.text[start : ends[line]]):
            if units >= column - 1:
                at = start + index
                return at - 1 if self.text[max(0, at - 1) : at + 1] == ")(" else at
            units += 2 if ord(character) > 0xFFFF else 1
        return ends[line]

    def author_position(self, offset: int | None) -> tuple[int, int] | tuple[None, None]:
        """Return the author's line and column, from 1, in code points. The end of a callee that an
        insertion wraps becomes the callee's last word, where V8 would report the author's call."""
        if offset is None:
            return None, None
        before = self._author_text((0, offset))
        if any(self._ends_callee(wrap, offset) for wrap in self._wraps):
            before = _LAST_WORD.sub("", before)
        starts = [0, *(match.end() for match in _AUTHORS_LINE_END.finditer(before))]
        return len(starts), len(before) - starts[-1] + 1

    def author_message(self, message: str, offset: int | None) -> str:
        """Return a message in which quoted insertions are replaced by the author's text; `offset`
        is where the error arose, if that is known."""
        methods = {match[1] for match in _QUOTED.finditer(message)}
        words = {method: self._words(self._quoted(method, offset)) for method in methods}
        return _QUOTED.sub(lambda match: words[match[1]] or match[0], message)

    def insertion_around(self, method: str, offset: int | None) -> str | None:
        """Return the inserted text that opens the innermost call of a method around an offset; None
        if it is in none."""
        at = -1 if offset is None else offset
        around = [
            wrap
            for wrap in self._wraps
            if wrap.method == method and wrap.opening[1] <= at < wrap.closing[0]
        ]
        return self.text[slice(*max(around).opening)] if around else None

    def _words(self, wrap: _Wrap | None) -> str | None:
        """Return the author's text within a wrap, on one line."""
        if wrap is None:
            return None
        words = " ".join(self._author_text((wrap.opening[1], wrap.closing[0])).split())
        return words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}…"

    def _ends_callee(self, wrap: _Wrap, offset: int) -> bool:
        if wrap.method not in ("at", "via") or not wrap.opening[1] < offset < wrap.closing[1]:
            return False
        return _LAST_BRACKETS.fullmatch(self.text, offset, wrap.closing[0]) is not None

    def _author_text(self, span: Span) -> str:
        """Return the author's text in a span."""
        parts: list[str] = []
        position, end = span
        for start, stop in self.insertions:
            if position < min(stop, end):
                parts.append(self.text[position : max(position, min(start, end))])
                position = stop
        return "".join((*parts, self.text[position:end]))

    @cached_property
    def _wraps(self) -> Sequence[_Wrap]:
        """Insertions that balance each other's brackets."""
        wraps: list[_Wrap] = []
        opened: list[Span] = []
        for start, end in self.insertions:
            inserted = self.text[start:end]
            balance = _balances(inserted)[-1]
            if balance > 0:
                opened.append((start, end))
            elif balance < 0 and opened:
                opening = opened.pop()
                method = _METHOD.match(self.text, *opening)
                wraps.append(_Wrap(opening, (start, end), method[1] if method else None))
        return wraps

    def _quoted(self, method: str, offset: int | None) -> _Wrap | None:
        """Return the call of a method that an error at `offset` is about: the innermost around it,
        else the last before it in the same brackets, else the next one."""
        wraps = [wrap for wrap in self._wraps if wrap.method == method]
        if offset is None:
            return wraps[0] if len(wraps) == 1 else None
        by_closeness = (
            *sorted((w for w in wraps if w.opening[0] <= offset < w.closing[1]), reverse=True),
            *sorted((w for w in wraps if self._beside(w, offset)), reverse=True),
            *sorted(w for w in wraps if offset < w.opening[0]),
        )
        return next(iter(by_closeness), None)

    def _beside(self, wrap: _Wrap, offset: int) -> bool:
        """Whether it ends a little before `offset`, in the same brackets."""
        if not 0 <= offset - wrap.closing[1] <= _NEAR:
            return False
        return min(_balances(self.text[wrap.closing[1] : offset])) == 0


def _balances(text: str) -> Sequence[int]:
    """Return the number of open brackets, at the start and after each bracket."""
    balances = [0]
    for character in _NO_CODE.sub("", text):
        if character in "([{":
            balances.append(balances[-1] + 1)
        elif character in ")]}":
            balances.append(balances[-1] - 1)
    return balances
