"""Characters that no reader sees, or that steer what shows them, as escapes.

The escapes are those of JavaScript, so that a text shown in quotes still means the same.
"""

import re
from typing import Final

_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Default-ignorable, or shown as nothing, though Python counts them as printable."""

LAYOUT: Final = "\n\t"
"""What text of several lines may keep."""


def visible(text: str, keep: str = "") -> str:
    """A text with every control, change of direction, lone surrogate and character without a shape
    written out (`\\x1b`, `\\u202e`), but for those in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char in keep or _is_seen(char) else escaped(char)  # one by one: most are ASCII
        for char in text
    )


def escaped(char: str) -> str:
    """A character as JavaScript escapes it."""
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\u{{{code:x}}}"


def _is_seen(char: str) -> bool:
    return char.isprintable() and (char.isascii() or _BLANK.match(char) is None)
