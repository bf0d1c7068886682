"""Values as text for approvers: all characters visible, long texts cut, misleading ones marked."""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from pydantic import JsonValue

from pml_common.binding.canonical import sha256_of, sha256_of_text
from pml_common.contracts.base import Contract
from pml_common.text.confusables import read_as
from pml_common.text.visible import escaped, visible

LONGEST: Final = 240
"""Characters of the longest text that is shown whole."""

_HEAD: Final = 140
_TAIL: Final = 60
_SHORT_DIGEST: Final = 8

_UPWARDS: Final = re.compile(r"(?:^|[/\\])\.\.(?:$|[/\\])")
_ABSOLUTE: Final = re.compile(r"(?:/|~|[A-Za-z]:[/\\]|\\\\|file:)", re.IGNORECASE)
_DIRECTION: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_WORD_ENDS: Final = re.compile(r"[\s/\\]+")
_TYPOGRAPHY: Final = frozenset(
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2010\u2011\u2012\u2013\u2014"
    "\u2026\u00d7\u3001\u3002"
)
"""Typographic characters of ordinary prose."""


class Cut(Contract):
    """Metadata of a truncated text: the whole length in characters, and the SHA-256 of the value's
    canonical JSON (RFC 8785), hex."""

    length: int
    sha256: str


def json_text(value: JsonValue) -> str:
    """Return a value as JSON with invisible characters escaped."""
    text = json.dumps(value, ensure_ascii=False)
    if visible(text) == text:
        return text
    return "".join(char if visible(char) == char else json.dumps(char)[1:-1] for char in text)


def digest_of(value: JsonValue) -> str:
    """Return the digest of a value, the same as in grants."""
    try:
        return sha256_of(value)
    except ValueError:  # a lone surrogate has no canonical form
        return sha256_of_text(json.dumps(value, sort_keys=True))


class ShownText(NamedTuple):
    """A text to show; with `cut`, its middle is left out."""

    text: str
    cut: Cut | None = None
    marks: tuple[str, ...] = ()


class TextRenderer:
    """Renders the texts of one approval. `budget`: characters of long texts that may be shown
    whole. A value shared by many calls is rendered once."""

    def __init__(self, budget: int = 0) -> None:
        self._budget = budget
        self._rendered: dict[int, tuple[JsonValue, str, Cut | None, tuple[str, ...]]] = {}

    def of_value(self, value: JsonValue) -> ShownText:
        """Render a value as JSON."""
        if id(value) not in self._rendered:
            text = json_text(value)
            long = Cut(length=len(text), sha256=digest_of(value)) if len(text) > LONGEST else None
            self._rendered[id(value)] = value, text, long, marks_of(value)
        _, text, long, marks = self._rendered[id(value)]
        return self._fitting(text, long, marks)

    def of_expression(self, expression: str) -> ShownText:
        """Render an expression of a program as written."""
        text = visible(expression)
        if len(text) <= LONGEST:
            return ShownText(text)
        return self._fitting(text, Cut(length=len(text), sha256=digest_of(expression)), ())

    def _fitting(self, text: str, long: Cut | None, marks: tuple[str, ...]) -> ShownText:
        if long is None:
            return ShownText(text, None, marks)
        if len(text) <= self._budget:
            self._budget -= len(text)
            return ShownText(text, None, marks)
        middle = f"…({len(text):,} characters, sha256 {long.sha256[:_SHORT_DIGEST]}…)…"
        return ShownText(f"{text[:_HEAD]}{middle}{text[-_TAIL:]}", long, marks)


def marks_of(value: JsonValue) -> tuple[str, ...]:
    """Return warnings about a value, each once."""
    found = (mark for text in _texts(value) for mark in _marks(text))
    return tuple(dict.fromkeys(found))


def marks_of_name(name: str) -> tuple[str, ...]:
    """Return warnings about the name of an argument."""
    return tuple(mark for mark in _marks(name) if not name.isascii())


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                yield key
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
        case _:
            return


def _marks(text: str) -> Iterator[str]:
    if _UPWARDS.search(text):
        yield "leads upwards (..)"
    if _ABSOLUTE.match(text):
        yield "absolute path"
    if text.isascii() and text.isprintable():
        return
    if turned := _DIRECTION.search(text):
        yield f"changes the direction of text ({escaped(turned[0])})"
    if hidden := next((char for char in text if _is_hidden(char)), None):
        yield f"has invisible characters ({escaped(hidden)})"
    if alike := _look_alike(text):
        yield f"reads like other characters ({alike}, U+{ord(alike):04X}, is not {read_as(alike)})"


def _is_hidden(char: str) -> bool:
    return char not in "\n\t\r" and visible(char) != char and not _DIRECTION.match(char)


def _look_alike(text: str) -> str | None:
    """Return the first non-ASCII character that reads as ASCII, in a word with ASCII letters or
    made of such characters only; other words of another script are harmless."""
    for word in _WORD_ENDS.split(text):
        alike = [char for char in word if not char.isascii() and _is_alike(char)]
        if alike and any(char.isascii() and char.isalnum() for char in word):
            return alike[0]
        if alike and all(map(_is_alike, word)):
            return alike[0]
    return next((char for char in text if char in "\u2215\u2044"), None)


def _is_alike(char: str) -> bool:
    return char not in _TYPOGRAPHY and visible(char) == char and read_as(char).isascii()
