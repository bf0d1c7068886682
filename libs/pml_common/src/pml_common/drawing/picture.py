"""A structure as boxes and arrows, independent of the output language."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pml_common.contracts.decision import Decision, Verdict
from pml_common.contracts.structure import (
    DynamicCall,
    Edge,
    EdgeType,
    Node,
    StaticStructure,
)
from pml_common.drawing.text import Captions, argument_text, arguments_of, mapping_text
from pml_common.text.short import short

BoxKind = Literal["task", "capability", "decision", "fork", "join", "loop", "dynamic", "empty"]

_PLAIN_ID: Final = re.compile(r"[ndlfj][0-9]{1,9}")
_MOST_ARGUMENTS: Final = 5
_WIDEST: Final = 60


@dataclass(frozen=True, slots=True)
class Box:
    """A node; `name` is unique and safe in any language, `lines` may hold any printable text."""

    name: str
    kind: BoxKind
    lines: tuple[str, ...]
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge between two boxes, by their names; the label may be empty."""

    start: str
    end: str
    kind: EdgeType
    label: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes in source order, then dynamic calls; at least one."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def picture(
    structure: StaticStructure, dynamic: Sequence[DynamicCall], decision: Decision | None
) -> Picture:
    """Return a structure's boxes and arrows; with a decision, the verdict on each call."""
    names = {
        node.id: node.id if _PLAIN_ID.fullmatch(node.id) else f"x{number}"
        for number, node in enumerate(structure.nodes)
    }
    captions = Captions(structure)
    verdicts = _verdicts(decision)
    boxes = [
        Box(names[node.id], node.type, tuple(_lines(node, captions)), verdicts.get(node.id))
        for node in structure.nodes
    ]
    boxes += [_unknown(number, call, decision) for number, call in enumerate(dynamic, start=1)]
    arrows = [
        Arrow(names[edge.from_], names[edge.to], edge.type, _label(edge))
        for edge in structure.edges
        if edge.from_ in names and edge.to in names
    ]
    return Picture(tuple(boxes or [Box("none", "empty", ("no tool is called",))]), tuple(arrows))


def _verdicts(decision: Decision | None) -> Mapping[str, Verdict]:
    tools = () if decision is None else decision.tools
    return {node_id: tool.verdict for tool in tools for node_id in tool.node_ids}


def _lines(node: Node, captions: Captions) -> Iterable[str]:
    yield f"{short(node.id, _WIDEST)} {captions.of(node, _WIDEST)}"
    given = arguments_of(node)
    for name in list(given)[:_MOST_ARGUMENTS]:
        yield short(f"{name}: {argument_text(given[name])}", _WIDEST)
    if len(given) > _MOST_ARGUMENTS:
        yield f"and {len(given) - _MOST_ARGUMENTS} more"


def _unknown(number: int, call: DynamicCall, decision: Decision | None) -> Box:
    lines = (f"line {call.line}: known when it runs", short(call.expression, _WIDEST))
    return Box(f"u{number}", "dynamic", lines, None if decision is None else "ask")


def _label(edge: Edge) -> str:
    match edge.type:
        case "conditional":
            return short(edge.outcome or "", _WIDEST)
        case "loop_body":
            return "each round"
        case "provides":
            return short(mapping_text(edge.field_mapping), _WIDEST)
        case _:
            return ""
