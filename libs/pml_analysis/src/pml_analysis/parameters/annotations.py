"""Simple type annotations of values."""

import re
from dataclasses import dataclass
from typing import Final

_PLAIN: Final = frozenset({"boolean", "number", "string"})
_ABSENT: Final = frozenset({"null", "undefined"})
_LIST: Final = re.compile(r"(?:readonly )?(\w+)\[\]|(?:Readonly)?Array<(\w+)>")


@dataclass(frozen=True, slots=True)
class Annotation:
    """A JSON type, that of its elements, and whether the value may be missing."""

    type: str
    items: str | None = None
    may_be_absent: bool = False


def read_annotation(text: str) -> Annotation | None:
    """Read `string`, `: number | undefined` or `string[]`; None for all other types."""
    names = [name.strip() for name in text.removeprefix(":").split("|")]
    present = [name for name in names if name not in _ABSENT]
    if len(present) != 1:
        return None
    may_be_absent = len(names) > 1
    if present[0] in _PLAIN:
        return Annotation(present[0], None, may_be_absent)
    elements = _LIST.fullmatch(present[0])
    if elements is None:
        return None
    of = elements[1] or elements[2]
    return Annotation("array", of if of in _PLAIN else None, may_be_absent)
