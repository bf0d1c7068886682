"""Simple type annotations of values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_PLAIN: Final = frozenset({"boolean", "number", "string"})
_ABSENT: Final = frozenset({"null", "undefined"})
_LIST: Final = re.compile(r"(?:readonly )?(\w+)\[\]|(?:Readonly)?Array<(\w+)>")
_FIELD: Final = re.compile(
    r"(?:readonly\s+)?([A-Za-z_$][\w$]*|\"[^\"\\]*\"|'[^'\\]*')(\?)?\s*:\s*(.+)", re.S
)
_ARROW: Final = "=>"
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_OPENING: Final = frozenset("{[(<")
_CLOSING: Final = frozenset("}])>")
_BETWEEN: Final = frozenset(";,\n")
_DEEPEST: Final = 8


@dataclass(frozen=True, slots=True)
class Annotation:
    """A JSON type, that of its elements, and whether the value may be missing; of an object the
    fields whose types are simple, too."""

    type: str
    items: str | None = None
    may_be_absent: bool = False
    fields: "Mapping[str, Annotation]" = field(default_factory=dict[str, "Annotation"])


def read_annotation(text: str, levels: int = _DEEPEST) -> Annotation | None:
    """Read `string`, `: number | undefined`, `string[]` or `{ path: string; limit?: number }`; None
    for all other types."""
    text = _COMMENT.sub(" ", text).strip().removeprefix(":").strip()
    names = [name.strip() for name in _parts(text, frozenset("|"))]
    present = [name for name in names if name and name not in _ABSENT]
    if len(present) != 1:
        return None
    may_be_absent = any(name in _ABSENT for name in names)
    if present[0] in _PLAIN:
        return Annotation(present[0], None, may_be_absent)
    if present[0].startswith("{") and present[0].endswith("}"):
        fields = _fields(present[0][1:-1], levels - 1) if levels else None
        return Annotation("object", None, may_be_absent, fields or {})
    elements = _LIST.fullmatch(present[0])
    if elements is None:
        return None
    of = elements[1] or elements[2]
    return Annotation("array", of if of in _PLAIN else None, may_be_absent)


def _fields(text: str, levels: int) -> Mapping[str, Annotation]:
    """Return the fields of an object type whose own types are simple."""
    found: dict[str, Annotation] = {}
    for part in _parts(text, _BETWEEN):
        named = _FIELD.fullmatch(part.strip())
        inner = read_annotation(named[3], levels) if named is not None else None
        if named is not None and inner is not None:
            may_be_absent = inner.may_be_absent or named[2] is not None
            whole = Annotation(inner.type, inner.items, may_be_absent, inner.fields)
            found[named[1].strip("\"'")] = whole
    return found


def _parts(text: str, between: frozenset[str]) -> Iterator[str]:
    """Split a text where it is in no brackets."""
    text = text.replace(_ARROW, "  ")  # its > closes nothing
    depth, begin = 0, 0
    for at, character in enumerate(text):
        if character in between and depth == 0:
            yield text[begin:at]
            begin = at + 1
        depth += (character in _OPENING) - (character in _CLOSING)
    yield text[begin:]
