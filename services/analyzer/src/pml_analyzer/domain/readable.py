"""What a text must be before it is parsed, and how large a program may be."""

import re
from dataclasses import dataclass
from typing import Final

from pml_analyzer.domain.problems import Problem


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a program may be: bytes of UTF-8, levels of syntax, nodes and edges."""

    source_bytes: int = 256 * 1024
    nesting: int = 500
    nodes: int = 1_000
    edges: int = 10_000


DEFAULT_LIMITS: Final = Limits()
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
EMPTY: Final = "The program is empty: write at least one statement."


def unreadable(text: str, limits: Limits) -> list[Problem]:
    """Why a text is no program at all; nothing when it may be parsed."""
    surrogate = None if text.isascii() else _SURROGATE.search(text)
    if surrogate is not None:
        return [
            Problem(surrogate.start(), "This is half a character: a lone surrogate is no Unicode.")
        ]
    nul = text.find("\0")
    if nul >= 0:
        return [Problem(nul, "A NUL character cannot stand in a program.")]
    size = len(text.encode())
    if size > limits.source_bytes:
        message = f"The program has {size:,} bytes; the limit is {limits.source_bytes:,}."
        return [Problem(0, message)]
    return []
