"""Values as text that an approver can judge: visible, cut where long, marked where they mislead."""

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
"""Characters of a text that is shown as it is."""

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
"""Quotes, dashes and the like of ordinary prose."""


class Cut(Contract):
    """A text shown in part: the length of the whole in characters, and the SHA-256 of the value's
    canonical JSON (RFC 8785), hex."""

    length: int
    sha256: str


def json_text(value: JsonValue) -> str:
    """A value as JSON, all of it visible."""
    text = json.dumps(value, ensure_ascii=False)
    if visible(text) == text:
        return text
    return "".join(char if visible(char) == char else json.dumps(char)[1:-1] for char in text)


def digest_of(value: JsonValue) -> str:
    """Digest of a value, by which grants name it too."""
    try:
        return sha256_of(value)
    except ValueError:  # half a character has no canonical form
        return sha256_of_text(json.dumps(value, sort_keys=True))


class ShownText(NamedTuple):
    """A text as it is shown; with `cut`, without its middle."""

    text: str
    cut: Cut | None = None
    marks: tuple[str, ...] = ()


class Texts:
    """Makes the texts of one approval. `room`: characters of long texts that may be shown whole;
    what many calls are given is read once."""

    def __init__(self, room: int = 0) -> None:
        self._room = room
        self._known: dict[int, tuple[JsonValue, str, Cut | None, tuple[str, ...]]] = {}

    def of_value(self, value: JsonValue) -> ShownText:
        """A value as JSON."""
        if id(value) not in self._known:
            text = json_text(value)
            long = Cut(length=len(text), sha256=digest_of(value)) if len(text) > LONGEST else None
            self._known[id(value)] = value, text, long, marks_of(value)
        _, text, long, marks = self._known[id(value)]
        return self._fitting(text, long, marks)

    def of_expression(self, expression: str) -> ShownText:
        """A part of a program, as it stands there."""
        text = visible(expression)
        if len(text) <= LONGEST:
            return ShownText(text)
        return self._fitting(text, Cut(length=len(text), sha256=digest_of(expression)), ())

    def _fitting(self, text: str, long: Cut | None, marks: tuple[str, ...]) -> ShownText:
        if long is None:
            return ShownText(text, None, marks)
        if len(text) <= self._room:
            self._room -= len(text)
            return ShownText(text, None, marks)
        middle = f"…({len(text):,} characters, sha256 {long.sha256[:_SHORT_DIGEST]}…)…"
        return ShownText(f"{text[:_HEAD]}{middle}{text[-_TAIL:]}", long, marks)


def marks_of(value: JsonValue) -> tuple[str, ...]:
    """What an approver must not overlook in a value, each once."""
    found = (mark for text in _texts(value) for mark in _marks(text))
    return tuple(dict.fromkeys(found))


def marks_of_name(name: str) -> tuple[str, ...]:
    """What an approver must not overlook in the name of an argument."""
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
        yield f"has characters that nobody sees ({escaped(hidden)})"
    if alike := _look_alike(text):
        yield f"reads like other characters ({alike}, U+{ord(alike):04X}, is not {read_as(alike)})"


def _is_hidden(char: str) -> bool:
    return char not in "\n\t\r" and visible(char) != char and not _DIRECTION.match(char)


def _look_alike(text: str) -> str | None:
    """The first character read as ASCII without being it, in a word that is read as ASCII in part
    or whole; words of another script alone are honest."""
    for word in _WORD_ENDS.split(text):
        alike = [char for char in word if not char.isascii() and _is_alike(char)]
        if alike and any(char.isascii() and char.isalnum() for char in word):
            return alike[0]
        if alike and all(map(_is_alike, word)):
            return alike[0]
    return next((char for char in text if char in "\u2215\u2044"), None)


def _is_alike(char: str) -> bool:
    return char not in _TYPOGRAPHY and visible(char) == char and read_as(char).isascii()
