"""What a text must be before it is parsed, and how large a program may be."""

import re
from dataclasses import dataclass
from typing import Final

from tree_sitter import Tree as RawTree

from pml_analysis.text.problems import Problem


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a program may be: bytes of UTF-8, levels of syntax, words and signs with the syntax
    that joins them, nodes and edges."""

    source_bytes: int = 256 * 1024
    nesting: int = 500
    tokens: int = 150_000
    nodes: int = 1_000
    edges: int = 10_000

    @property
    def given(self) -> int:
        """Characters of all calls' arguments: what a name holds may be given to many."""
        return 4 * self.source_bytes


DEFAULT_LIMITS: Final = Limits()
_DEEPEST: Final = 2_000
"""Brackets inside each other, four times what syntax may: far more of them end the parser."""

_BRACKETS: Final = re.compile(r"[()\[\]{}]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
TOO_DEEP: Final = "This stands too deep inside other code: move parts of it into functions."
TOO_BROKEN: Final = "Too much before this is no TypeScript to say what is wrong: send a program."
EMPTY: Final = "The program is empty: write at least one statement."


def unreadable(text: str, limits: Limits) -> list[Problem]:
    """Why a text is no program at all; nothing when it may be parsed."""
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
        return [Problem(nul, "A NUL character cannot stand in a program: write \\0.")]
    size = len(text.encode())
    if size > limits.source_bytes:
        message = (
            f"The program has {size:,} bytes; the limit is {limits.source_bytes:,}: "
            "hand data in as args, or split it."
        )
        return [Problem(0, message)]
    deep = _too_deep(text)
    return [Problem(deep, TOO_DEEP)] if deep is not None else []


def too_long(raw: RawTree, limits: Limits) -> list[Problem]:
    """Why a text that parses is more than the passes are made for; nothing when it is not."""
    tokens = raw.root_node.descendant_count
    if tokens <= limits.tokens:
        return []
    message = (
        f"The program has {tokens:,} words and signs; the limit is {limits.tokens:,}: "
        "hand data in as args, or split it."
    )
    return [Problem(0, message)]


def _too_deep(text: str) -> int | None:
    """Where brackets, those in texts and comments too, stand deeper than any program has them."""
    if sum(map(text.count, "([{")) <= _DEEPEST:
        return None
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth = depth + 1 if match[0] in "([{" else max(0, depth - 1)
        if depth > _DEEPEST:
            return match.start()
    return None
