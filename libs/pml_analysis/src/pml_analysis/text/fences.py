"""Markdown fences: three or more backticks or tildes on lines of their own, round a program.

A language model sends them by habit. In JavaScript backticks are empty templates that call each
other, so that such a text often parses, and means nothing.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from tree_sitter import Tree as RawTree

from pml_analysis.syntax.parser import TooBroken, parse
from pml_analysis.syntax.queries import captures
from pml_analysis.syntax.source import LINE_END, Source
from pml_analysis.text.problems import Problem

# Possessive throughout: adjacent runs of blanks would be divided in every way before a failure.
_FENCE: Final = re.compile(
    r"^\ufeff?[ \t]*+(?:(?P<ticks>`{3,}+)[^\r\n]*+"
    r"|(?P<tildes>~{3,}+)[ \t]*+[\w+#.-]*+[ \t]*+;?[ \t]*+)(?=\r?$)",
    re.MULTILINE,
)
_OPENING: Final = re.compile(r"\ufeff?[ \t]*+(?P<sign>`{3,}+|~{3,}+)[ \t]*+[\w+#.-]*+[ \t]*+")
_CLOSING: Final = re.compile(r"[ \t]*+(?P<sign>`{3,}+|~{3,}+)[ \t]*+;?[ \t]*+")
_INLINE_CODE: Final = re.compile(r"`[^`\r\n]*`")
_CODE: Final = re.compile(
    r"`|=>|\s=\s|[\w$]\(|\+\+|/\*|\*/|[;{}(\[=][ \t\r]*$|^[ \t]*(?://|[\[({]"
    r"|(?:async|await|class|const|export|function|import|let|return|throw|var)\b)",
    re.MULTILINE,
)
"""Signs of code in lines that should be prose."""

TAKEN_OFF: Final = "The Markdown fence round the program was taken off: send the code alone."
PROSE_TAKEN_OFF: Final = (
    "The Markdown fence round the program was taken off, with the prose beside it: send the code "
    "alone."
)
_SEND: Final = "send the code of one program alone, without lines of ``` or ~~~"


class Unfenced(NamedTuple):
    """A program without the fence round it, on the lines on which it was sent."""

    text: str
    notice: str


def unfenced(source: Source, raw: RawTree) -> Unfenced | Problem | None:
    """Take the outer fence off a text that was parsed. Returns None for a text without fences in
    its code; for a text whose program cannot be told from its fences, the problem."""
    opening = next(_in_code(source, raw), None)
    if opening is None:
        return None
    text, start = source.text, opening.start()
    opened = _OPENING.fullmatch(opening[0])
    if opened is None:
        return Problem(start, f"A Markdown fence has code on its line: {_SEND}.")
    before = text[:start]
    if not _is_prose(before):
        return Problem(start, f"A Markdown fence begins after code: {_SEND}.")
    sign = opened["sign"]
    closings = [
        each
        for each in _FENCE.finditer(text, opening.end())
        if (closed := _CLOSING.fullmatch(each[0])) is not None and closed["sign"].startswith(sign)
    ]
    for closing in dict.fromkeys((*closings[-1:], *closings[:1])):
        inside, after = text[opening.end() : closing.start()], text[closing.end() :]
        if _is_prose(after) and (len(closings) == 1 or _is_program(inside)):
            return _taken(before, inside, after)
    if closings:
        return Problem(start, f"This Markdown fence is not the only one: {_SEND}.")
    if not _is_program(text[opening.end() :]):
        return Problem(start, f"This Markdown fence is never closed: {_SEND}.")
    return _taken(before, text[opening.end() :], "")


def _taken(before: str, inside: str, after: str) -> Unfenced:
    lines = "\n" * sum(1 for _ in LINE_END.finditer(before))
    has_prose = bool(before.strip("\ufeff \t\r\n") or after.strip())
    return Unfenced(lines + inside.rstrip(), PROSE_TAKEN_OFF if has_prose else TAKEN_OFF)


def _in_code(source: Source, raw: RawTree) -> Iterator[re.Match[str]]:
    """Yield the lines that open a fence, but for those in literals and comments."""
    text = source.text
    if "```" not in text and "~~~" not in text:
        return
    texts = captures(raw, source, "texts")
    for line in _FENCE.finditer(text):
        at = line.start("ticks") if line["ticks"] else line.start("tildes")
        before = bisect_right(texts, at, key=lambda capture: capture.start)
        if not before or texts[before - 1].end <= at:
            yield line


def _is_program(text: str) -> bool:
    """Whether a text parses, and has no fence in its code."""
    source = Source(text)
    try:
        raw = parse(source)
    except TooBroken:
        return False
    return not raw.root_node.has_error and next(_in_code(source, raw), None) is None


def _is_prose(text: str) -> bool:
    return _CODE.search(_INLINE_CODE.sub("", text)) is None
