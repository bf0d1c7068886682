"""A structure in Graphviz's language."""

from collections.abc import Mapping, Sequence
from typing import Final

from pml_common.contracts.decision import Decision, Verdict
from pml_common.contracts.structure import DynamicCall, EdgeType, StaticStructure
from pml_common.drawing.picture import Arrow, Box, BoxKind, picture

_HEAD: Final = """\
digraph structure {
  charset="UTF-8";
  node [fontname="Helvetica" fontsize=11];
  edge [fontname="Helvetica" fontsize=9];
"""
_SHAPES: Final[Mapping[BoxKind, str]] = {
    "task": "shape=box",
    "capability": "shape=box peripheries=2",
    "decision": "shape=diamond",
    "fork": "shape=trapezium",
    "join": "shape=invtrapezium",
    "loop": "shape=hexagon",
    "dynamic": 'shape=box style="dashed"',
    "empty": "shape=plaintext",
}
_ARROWS: Final[Mapping[EdgeType, str]] = {
    "sequence": "",
    "conditional": "",
    "loop_body": "penwidth=2",
    "provides": 'style="dotted" constraint=false',
    "contains": "arrowhead=odiamond",
}
_COLOURS: Final[Mapping[Verdict, str]] = {
    "allow": 'color="#1a7f37"',
    "ask": 'color="#bf8700" penwidth=2',
    "deny": 'color="#cf222e" penwidth=3',
}


def dot(
    structure: StaticStructure,
    *,
    dynamic: Sequence[DynamicCall] = (),
    decision: Decision | None = None,
) -> str:
    """Return the text of a graph, a line per box and arrow; with a decision, calls are outlined by
    their verdict."""
    seen = picture(structure, dynamic, decision)
    lines = [*map(_box, seen.boxes), *map(_arrow, seen.arrows)]
    return _HEAD + "".join(f"  {line};\n" for line in lines) + "}\n"


def _box(box: Box) -> str:
    colour = "" if box.verdict is None else f" {_COLOURS[box.verdict]}"
    label = "\\n".join(map(_escaped, box.lines))
    return f'{box.name} [label="{label}" {_SHAPES[box.kind]}{colour}]'


def _arrow(arrow: Arrow) -> str:
    label = f'label="{_escaped(arrow.label)}"' if arrow.label else ""
    attributes = " ".join(filter(None, [label, _ARROWS[arrow.kind]]))
    return f"{arrow.start} -> {arrow.end}{f' [{attributes}]' if attributes else ''}"


def _escaped(text: str) -> str:
    """Escape quotes, and backslashes and entities, which Graphviz interprets inside quotes too."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
