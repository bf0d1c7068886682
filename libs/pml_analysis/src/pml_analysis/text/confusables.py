"""Look-alikes: names with characters of other scripts that are read as ASCII."""

from pml_analysis.text.characters import ODD, named
from pml_common.text.confusables import read_as

__all__ = ["disguise", "disguised", "read_as"]


def disguised(name: str) -> str | None:
    """The ASCII name that a name is read as without being it; None for honest names."""
    if name.isascii():
        return None
    seen = "".join(map(read_as, ODD.sub("", name)))
    return seen if seen.isascii() else None


def disguise(name: str) -> str:
    """What makes a name with look-alikes another than it seems: its first such character."""
    char = next(char for char in name if not char.isascii())
    seen = "" if ODD.match(char) else read_as(char)
    return f"{named(char)}, {f'not {seen}' if seen else 'which nobody sees'}"
