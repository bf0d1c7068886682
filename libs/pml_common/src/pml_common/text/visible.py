"""Escapes for invisible characters and those that control a terminal.

The escapes are JavaScript's, so that a quoted text keeps its meaning.
"""

import re
from typing import Final

_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Default-ignorable or blank characters that Python counts as printable."""

LAYOUT: Final = "\n\t"
"""Control characters that multi-line text may keep."""


def visible(text: str, keep: str = "") -> str:
    """Escape every control character, direction change, lone surrogate and invisible character of a
    text (`\\x1b`, `\\u202e`), except those in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char in keep or _is_seen(char) else escaped(char)  # one by one: most are ASCII
        for char in text
    )


def escaped(char: str) -> str:
    """Return JavaScript's escape of a character."""
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\u{{{code:x}}}"


def _is_seen(char: str) -> bool:
    return char.isprintable() and (char.isascii() or _BLANK.match(char) is None)
