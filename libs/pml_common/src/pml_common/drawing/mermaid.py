"""A structure as a Mermaid flowchart that GitHub renders."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pml_common.contracts.decision import Decision
from pml_common.contracts.structure import DynamicCall, EdgeType, StaticStructure
from pml_common.drawing.picture import Arrow, Box, BoxKind, picture

MOST_ARROWS: Final = 500
"""The limit of viewers, GitHub's included (Mermaid's `maxEdges`)."""

_SHAPES: Final[dict[BoxKind, tuple[str, str]]] = {
    "task": ("[", "]"),
    "capability": ("[[", "]]"),
    "decision": ("{", "}"),
    "fork": ("[/", "\\]"),
    "join": ("[\\", "/]"),
    "loop": ("{{", "}}"),
    "dynamic": (">", "]"),
    "empty": ("(", ")"),
}
_ARROWS: Final[dict[EdgeType, str]] = {
    "sequence": "-->",
    "conditional": "-->",
    "loop_body": "==>",
    "provides": "-.->",
    "contains": "--o",
}
_CLASSES: Final = {
    "allow": "stroke:#1a7f37,stroke-width:2px",
    "ask": "stroke:#bf8700,stroke-width:3px",
    "deny": "stroke:#cf222e,stroke-width:4px",
    "unknown": "stroke-dasharray:6 4",
}
_GAP: Final = "\u200b"
_ALIKE: Final = str.maketrans({"`": "\u02cb", "*": "\u2217", "~": "\u223c"})
"""Replacements for Markdown characters, which some viewers interpret in labels even as entities,
hiding text."""

_JOINED: Final = re.compile(r"\$(?=\$)|\\(?=.)|:(?=//|fa)|www(?=\.)|@|(?<![^\W_])_|_(?![^\W_])")
"""Formulas, escapes, icons, links and emphasis, broken up by a zero-width space."""

_SPECIAL: Final = re.compile(r'["#&<>\\$%;]|s(?=tyle)|c(?=lassDef)|^[-+\d]')
"""Characters that end the text or begin an entity, a tag, a directive or a list."""


def mermaid(
    structure: StaticStructure,
    *,
    dynamic: Sequence[DynamicCall] = (),
    decision: Decision | None = None,
) -> str:
    """Return the text of a diagram, a line per box and arrow; with a decision, calls are outlined
    by their verdict."""
    seen = picture(structure, dynamic, decision)
    lines = ["flowchart TD", *map(_box, seen.boxes), *map(_arrow, seen.arrows)]
    return "\n".join([*lines, *_styles(seen.boxes)]) + "\n"


def _box(box: Box) -> str:
    opening, closing = _SHAPES[box.kind]
    return f'  {box.name}{opening}"{"<br/>".join(map(_escaped, box.lines))}"{closing}'


def _arrow(arrow: Arrow) -> str:
    label = f'|"{_escaped(arrow.label)}"|' if arrow.label else ""
    return f"  {arrow.start} {_ARROWS[arrow.kind]}{label} {arrow.end}"


def _styles(boxes: Sequence[Box]) -> Iterator[str]:
    members: dict[str, list[str]] = {}
    for box in boxes:
        if box.verdict is not None:
            members.setdefault(box.verdict, []).append(box.name)
        if box.kind == "dynamic":
            members.setdefault("unknown", []).append(box.name)
    for name, style in _CLASSES.items():
        if name in members:
            yield f"  classDef {name} {style}"
            yield f"  class {','.join(members[name])} {name}"


def _escaped(text: str) -> str:
    apart = _JOINED.sub(_apart, text.translate(_ALIKE))
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", apart)


def _apart(found: re.Match[str]) -> str:
    return f"{_GAP if found[0] == '_' else ''}{found[0]}{_GAP}"
