"""Previews of programs."""

from typing import Final

LONGEST: Final = 240
"""Characters of a preview."""


def preview_of(code: str) -> str:
    """Return the beginning of a program: whole lines, or a part of the first; `…` at the end stands
    for the rest."""
    text = code.strip()
    if len(text) <= LONGEST:
        return text
    begins = text[: LONGEST - 1]
    lines = begins.rpartition("\n")[0].rstrip()
    return f"{lines}\n…" if lines else f"{begins}…"
