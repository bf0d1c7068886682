"""Conditions on a text before it is parsed, and limits on the size of programs."""

import re
from dataclasses import dataclass
from typing import Final

from tree_sitter import Tree as RawTree

from pml_analysis.text.problems import Problem


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the size of a program: bytes of UTF-8, levels of syntax, words and signs with the
    syntax that joins them, nodes and edges."""

    source_bytes: int = 256 * 1024
    nesting: int = 500
    tokens: int = 150_000
    nodes: int = 1_000
    edges: int = 10_000

    @property
    def argument_characters(self) -> int:
        """Characters of all calls' arguments: the value of one name may be passed to many calls."""
        return 4 * self.source_bytes


DEFAULT_LIMITS: Final = Limits()
_MAX_DEPTH: Final = 2_000
"""Depth of brackets, four times that of syntax; far deeper ones crash the parser."""

_BRACKETS: Final = re.compile(r"[()\[\]{}]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
TOO_DEEP: Final = "This is nested too deeply: move parts of it into functions."
TOO_BROKEN: Final = "The text before this has too many syntax errors: send a program."
EMPTY: Final = "The program is empty: write at least one statement."


def unreadable(text: str, limits: Limits) -> list[Problem]:
    """Return why a text cannot be parsed; nothing when it can."""
    surrogate = None if text.isascii() else _SURROGATE.search(text)
    if surrogate is not None:
        return [
            Problem(
                surrogate.start(),
                "This is half a character, a lone surrogate: write it as an escape, "
                f"\\u{ord(surrogate[0]):04x}.",
            )
        ]
    nul = text.find("\0")
    if nul >= 0:
        return [Problem(nul, "A program cannot contain a NUL character: write \\0.")]
    size = len(text.encode())
    if size > limits.source_bytes:
        message = (
            f"The program has {size:,} bytes; the limit is {limits.source_bytes:,}: "
            "pass data as args, or split it."
        )
        return [Problem(0, message)]
    deep = _too_deep(text)
    return [Problem(deep, TOO_DEEP)] if deep is not None else []


def too_long(raw: RawTree, limits: Limits) -> list[Problem]:
    """Return why a parsed text is too large for the passes; nothing when it is not."""
    tokens = raw.root_node.descendant_count
    if tokens <= limits.tokens:
        return []
    message = (
        f"The program has {tokens:,} words and signs; the limit is {limits.tokens:,}: "
        "pass data as args, or split it."
    )
    return [Problem(0, message)]


def _too_deep(text: str) -> int | None:
    """Return where brackets, those in texts and comments too, nest deeper than in any program."""
    if sum(map(text.count, "([{")) <= _MAX_DEPTH:
        return None
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth = depth + 1 if match[0] in "([{" else max(0, depth - 1)
        if depth > _MAX_DEPTH:
            return match.start()
    return None
