"""Characters pass: invisible characters, and those that reorder the displayed text.

The displayed text must be the text that runs (Unicode Technical Standard 55): code contains no such
character; in a literal or a comment its effect must not reach beyond it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tree_sitter import Tree as RawTree

from pml_analysis.syntax.queries import captures
from pml_analysis.syntax.source import LINE_END, Source
from pml_analysis.text.problems import Problem

ODD: Final = re.compile(
    "[\x01-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Controls, and Unicode's default-ignorable characters: displayed as nothing, or as a
reordering."""

_LINES: Final = dict.fromkeys(map(ord, "\t\n\r"))
_BYTE_ORDER_MARK: Final = "\ufeff"
_POP: Final = "\u202c"
_POP_ISOLATE: Final = "\u2069"
_OPENING: Final = {
    **dict.fromkeys("\u202a\u202b\u202d\u202e", _POP),
    **dict.fromkeys("\u2066\u2067\u2068", _POP_ISOLATE),
}
"""Characters that begin a reordering, with those that end it; the end of a line does too."""

_SEPARATORS: Final = "\u2028\u2029"
_BETWEEN_LETTERS: Final = "\u00ad\u061c\u200c\u200d\u200e\u200f"
"""Parts of words and pictures in many scripts, beside a character of theirs."""

_HIDING: Final = 4
"""Length of a run that hides something, even in a comment."""

_FLAG: Final = "\U0001f3f4"
"""Begins flags that are spelled with tags."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A literal's or comment's text between escapes and substitutions."""

    start: int
    end: int
    is_comment: bool


def misplaced_characters(raw: RawTree, source: Source) -> list[Problem]:
    """Return characters that make code look other than it is."""
    texts, places = _texts(raw, source)
    found = [
        Problem(at, _in_code(source.text[at]))
        for at in places
        if _around(texts, at) is None and not (at == 0 and source.text[at] == _BYTE_ORDER_MARK)
    ]
    for text in texts:
        found += [
            Problem(at, _unending(source.text[at], is_comment=text.is_comment))
            for at in _unclosed(source.text, text)
        ]
    return sorted(found, key=lambda problem: problem.offset)


def unseen_characters(raw: RawTree, source: Source) -> list[Problem]:
    """Return invisible characters in literals, and in comments that hide much: the first of
    each."""
    texts, _ = _texts(raw, source)
    found: list[Problem] = []
    for text in texts:
        unclosed = set(_unclosed(source.text, text))
        for match in _runs(source.text, text):
            if match.start() not in unclosed and _is_unseen(source.text, match, text):
                found.append(Problem(match.start(), _unseen(match[0], is_comment=text.is_comment)))
                break
    return found


def named(char: str) -> str:
    """Name a character for messages: `U+200B ZERO WIDTH SPACE`."""
    return f"U+{ord(char):04X} {unicodedata.name(char, 'CONTROL CHARACTER')}"


def _texts(raw: RawTree, source: Source) -> tuple[list[_Text], list[int]]:
    """Return the texts that contain odd characters, in source order."""
    if source.text.isascii() and source.text.translate(_LINES).isprintable():
        return [], []  # most are
    places = [match.start() for match in ODD.finditer(source.text)]
    found: list[_Text] = []
    for capture in captures(raw, source, "texts") if places else ():
        is_comment = capture.name != "literal"
        last = found[-1] if found else None
        if last is not None and last.end == capture.start and not (is_comment or last.is_comment):
            found[-1] = _Text(last.start, capture.end, is_comment)
        else:
            found.append(_Text(capture.start, capture.end, is_comment))
    return [text for text in found if _holds_any(places, text)], places


def _holds_any(places: list[int], text: _Text) -> bool:
    after = bisect_right(places, text.start - 1)
    return after < len(places) and places[after] < text.end


def _around(texts: list[_Text], at: int) -> _Text | None:
    before = bisect_right(texts, at, key=lambda text: text.start)
    return texts[before - 1] if before and at < texts[before - 1].end else None


def _runs(source: str, text: _Text) -> Iterator[re.Match[str]]:
    return _RUNS.finditer(source, text.start, text.end)


_RUNS: Final = re.compile(f"{ODD.pattern}+")


def _unclosed(source: str, text: _Text) -> Iterator[int]:
    """Return the position of a reordering that is still open when the line or text ends."""
    line = text.start
    for match in [*LINE_END.finditer(source, text.start, text.end), None]:
        end = match.start() if match else text.end
        yield from _unclosed_in(source, line, end)
        line = match.end() if match else end


def _unclosed_in(source: str, start: int, end: int) -> list[int]:
    opened: list[tuple[int, str]] = []
    isolates = 0
    for match in ODD.finditer(source, start, end):
        char = match[0]
        if char in _OPENING:
            opened.append((match.start(), _OPENING[char]))
            isolates += _OPENING[char] == _POP_ISOLATE
        elif char == _POP and opened and opened[-1][1] == _POP:
            opened.pop()
        elif char == _POP_ISOLATE and isolates:
            while opened.pop()[1] != _POP_ISOLATE:
                pass
            isolates -= 1
    return [at for at, _ in opened]


def _is_unseen(source: str, match: re.Match[str], text: _Text) -> bool:
    """Whether a run of odd characters in a text deserves a warning."""
    run = match[0]
    before = source[match.start() - 1] if match.start() > text.start else ""
    after = source[match.end()] if match.end() < text.end else ""
    if "\ufe00" <= run[0] <= "\ufe0f" and len(run) == 1:
        return False
    if all(char in _BETWEEN_LETTERS for char in run.replace("\ufe0f", "")):
        return not text.is_comment and (before + after).isascii()
    if before == _FLAG and run[-1] == "\U000e007f":
        return False
    return not text.is_comment or len(run) >= _HIDING or any(char in _OPENING for char in run)


def _in_code(char: str) -> str:
    if char in _SEPARATORS:
        return f"{named(char)} ends this line, though many editors show none: use a line feed."
    return f"{named(char)} is invisible in the code: remove it."


def _unending(char: str, *, is_comment: bool) -> str:
    remedy = "remove it" if is_comment else f"write {_escape(char)}, or end it with {_end(char)}"
    return f"{named(char)} makes the text after it look different: {remedy}."


def _end(char: str) -> str:
    return f"U+{ord(_OPENING[char]):04X}"


def _unseen(run: str, *, is_comment: bool) -> str:
    char = next((char for char in run if char in _OPENING), run[0])
    does = "changes the order in which this is shown" if char in _OPENING else "cannot be seen here"
    more = f" ({len(run)} such characters)" if len(run) > 1 else ""
    remedy = "remove it" if is_comment else f"write {_escape(char)} if it is meant"
    return f"{named(char)} {does}{more}: {remedy}."


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\u{{{code:x}}}"
