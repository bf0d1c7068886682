"""Confusables: names with characters of other scripts that look like ASCII."""

from pml_analysis.text.characters import ODD, named
from pml_common.text.confusables import read_as

__all__ = ["confusable_character", "imitated_name", "read_as"]


def imitated_name(name: str) -> str | None:
    """Return the ASCII name that a name looks like without being it; None for honest names."""
    if name.isascii():
        return None
    seen = "".join(map(read_as, ODD.sub("", name)))
    return seen if seen.isascii() else None


def confusable_character(name: str) -> str:
    """Return the first confusable character of a name."""
    char = next(char for char in name if not char.isascii())
    seen = "" if ODD.match(char) else read_as(char)
    return f"{named(char)}, {f'not {seen}' if seen else 'which is invisible'}"
