"""From the text that runs back to the text its author wrote: places and words in errors.

The analyzer states what it put in. V8 knows the instrumented text alone: its places count in it,
and some of its messages quote it (`__pml.at(...) is not a function`).
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
"""As the sandbox counts lines."""
_AUTHORS_LINE_END = re.compile("\r\n|[\n\r\u2028\u2029]")
"""As JavaScript does, and the analyzer with it."""

_LAST_WORD = re.compile(r"[\w$#]+[)!\s]*\Z")
_LAST_BRACKETS = re.compile(r"[)!\s]*")
_METHOD = re.compile(r"__pml\.(\w+)\(")
_QUOTED = re.compile(r"__pml\.(at|via|decide|absent|last|subject)\b(?:\(\.\.\.\))?")
_NO_CODE = re.compile(
    r"""("(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*` | //[^\n]* | /\*.*?\*/)""",
    re.VERBOSE | re.DOTALL,
)
_MAX_WORDS = 80
_NEAR = 2_000
"""Characters between a call and an error about it: programs may be large and must not be slow."""


class _Wrap(NamedTuple):
    """Two insertions that belong together, round a part of the author's."""

    opening: Span
    closing: Span
    method: str | None


@dataclass(frozen=True)
class Instrumented:
    """A program as it runs, and the spans of it that its author did not write, in order."""

    text: str
    insertions: Sequence[Span] = ()

    @classmethod
    def of(cls, command: RunWorkflow) -> "Instrumented":
        """The program of a run."""
        return cls(command.instrumented, command.insertions)

    def offset(self, line: int, column: int) -> int | None:
        """Where a place of the sandbox's is; both count from 1, columns in UTF-16 units. None for
        a line that is not there."""
        ends = [0, *(match.end() for match in _LINE_END.finditer(self.text)), len(self.text)]
        if not 1 <= line < len(ends):
            return None
        start = ends[line - 1]
        units = 0
        for index, character in enumerate(self.text[start : ends[line]]):
            if units >= column - 1:
                return start + index
            units += 2 if ord(character) > 0xFFFF else 1
        return ends[line]

    def place(self, offset: int | None) -> tuple[int, int] | tuple[None, None]:
        """The author's line and column, from 1, in code points; of the end of a callee that was
        put into a call, the callee's last word, where V8 sees the author's own call."""
        if offset is None:
            return None, None
        before = self._authors((0, offset))
        if any(self._ends_callee(wrap, offset) for wrap in self._wraps):
            before = _LAST_WORD.sub("", before)
        starts = [0, *(match.end() for match in _AUTHORS_LINE_END.finditer(before))]
        return len(starts), len(before) - starts[-1] + 1

    def in_authors_words(self, message: str, offset: int | None) -> str:
        """A message with what it quotes of the insertions put as the author did; `offset` is where
        the error arose, if that is known."""

        methods = {match[1] for match in _QUOTED.finditer(message)}
        words = {method: self._words(self._quoted(method, offset)) for method in methods}
        return _QUOTED.sub(lambda match: words[match[1]] or match[0], message)

    def _words(self, wrap: _Wrap | None) -> str | None:
        """What the author wrote within a wrap, on one line."""
        if wrap is None:
            return None
        words = " ".join(self._authors((wrap.opening[1], wrap.closing[0])).split())
        return words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}…"

    def _ends_callee(self, wrap: _Wrap, offset: int) -> bool:
        if wrap.method not in ("at", "via") or not wrap.opening[1] < offset < wrap.closing[1]:
            return False
        return _LAST_BRACKETS.fullmatch(self.text, offset, wrap.closing[0]) is not None

    def _authors(self, span: Span) -> str:
        """What the author wrote in a span."""
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
        """Which of the calls of a method an error at `offset` is about: the innermost round it,
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
    """How many brackets are open, at the start and after each bracket."""
    balances = [0]
    for character in _NO_CODE.sub("", text):
        if character in "([{":
            balances.append(balances[-1] + 1)
        elif character in ")]}":
            balances.append(balances[-1] - 1)
    return balances
