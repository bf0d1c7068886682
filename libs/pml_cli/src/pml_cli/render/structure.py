"""Rendering of a static structure as a tree: order, conditions, and the decision on each call.

Readable without colour and in 80 columns: marks and words repeat what colours say, and no line
wraps.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from pml_common.contracts.decision import Decision, Verdict
from pml_common.contracts.structure import (
    CapabilityNode,
    DecisionNode,
    DynamicCall,
    StaticStructure,
    TaskNode,
)
from pml_common.drawing.outline import outline
from pml_common.drawing.rows import BranchRow, JumpRow, NodeRow, Row
from pml_common.drawing.text import Captions, argument_text, arguments_of
from pml_common.text.short import short

MARKS: Final[dict[Verdict, tuple[str, str]]] = {
    "allow": ("✓", "green"),
    "ask": ("?", "yellow"),
    "deny": ("✗", "red"),
}
"""Mark and colour by verdict."""

_NARROWEST: Final = 40
"""Minimum columns for a line's text, at any depth."""

_LONGEST_ARGUMENT: Final = 40


class StructureTree:
    """Renders itself to the available width. Calls are marked with their verdict, if there is
    one."""

    def __init__(
        self,
        structure: StaticStructure,
        title: str,
        decision: Decision | None = None,
        dynamic: Sequence[DynamicCall] = (),
    ) -> None:
        self._lines = _joined(outline(structure))
        self._title = title
        self._dynamic = dynamic
        self._words = _Words(structure, decision)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        yield Text(short(self._title, width), style="bold", no_wrap=True, overflow="ellipsis")
        depths = [line.depth for line in self._lines] + [0] * len(self._dynamic)
        guides = _Guides(depths, width)
        for place, line in enumerate(self._lines):
            yield from guides.hang(place, self._words.of(line, guides.room(place)))
        for place, call in enumerate(self._dynamic, start=len(self._lines)):
            words = self._words.unknown(call, guides.room(place))
            yield from guides.hang(place, [words])
        if not depths:
            yield Text("no tool calls", style="dim")


def structure_tree(
    structure: StaticStructure,
    title: str,
    decision: Decision | None = None,
    dynamic: Sequence[DynamicCall] = (),
) -> StructureTree:
    """Render nodes in order, top to bottom; branches are nested under their decision, and nodes
    after their join follow it."""
    return StructureTree(structure, title, decision, dynamic)


@dataclass(frozen=True, slots=True)
class _Line:
    """A row; with `way`, it shares the line of the branch that leads to it."""

    depth: int
    row: Row
    way: BranchRow | None = None


def _joined(rows: Sequence[Row]) -> list[_Line]:
    """Merge a branch and its only row into one line, so that `else if` does not nest twice."""
    has_next = _has_next([row.depth for row in rows])
    lines: list[_Line] = []
    under: list[int] = []
    """Depths of the branches that share a line with the row below them."""
    way: BranchRow | None = None
    for place, row in enumerate(rows):
        while under and row.depth <= under[-1]:
            under.pop()
        below = rows[place + 1] if place + 1 < len(rows) else None
        if isinstance(row, BranchRow) and not row.ends and below and not has_next[place + 1]:
            is_decision = isinstance(below, NodeRow) and isinstance(below.node, DecisionNode)
            if isinstance(below, JumpRow) or is_decision:
                way = row
                continue
        if way is None:
            lines.append(_Line(row.depth - len(under), row))
        else:
            lines.append(_Line(way.depth - len(under), row, way))
            under.append(way.depth)
            way = None
    return lines


def _has_next(depths: Sequence[int]) -> list[bool]:
    """Whether another row of the same depth follows before a shallower one."""
    found: list[bool] = []
    open_: set[int] = set()
    for depth in reversed(depths):
        found.append(depth in open_)
        open_ = {other for other in open_ if other < depth} | {depth}
    return found[::-1]


class _Guides:
    """The guide lines that connect rows."""

    def __init__(self, depths: Sequence[int], width: int) -> None:
        self._depths = depths
        self._width = width
        self._most = max(2, (width - min(_NARROWEST, width // 2)) // 3)
        """Number of levels that are drawn; outer levels are omitted."""
        self._has_next = _has_next(depths)
        self._open: list[bool] = [False] * (max(depths, default=0) + 1)
        """By depth, whether the last row drawn has a later sibling."""

    def room(self, place: int) -> int:
        """Columns for the text of a row."""
        return self._width - 3 * min(self._depths[place] + 1, self._most)

    def hang(self, place: int, words: Iterable[Text]) -> Iterator[Text]:
        """The row's lines behind their guides; the first one is connected to the row above."""
        depth, is_open = self._depths[place], self._has_next[place]
        self._open[depth] = is_open
        outer = "".join("│  " if self._open[level] else "   " for level in range(depth))
        first = outer + ("├─ " if is_open else "└─ ")
        later = outer + ("│  " if is_open else "   ")
        for number, text in enumerate(words):
            drawn = later if number else first
            if len(drawn) > 3 * self._most:
                drawn = f"⋯  {drawn[3 - 3 * self._most :]}"
            yield _on_one_line(Text(drawn, style="dim").append_text(text))


def _on_one_line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


class _Words:
    """The text of the lines."""

    def __init__(self, structure: StaticStructure, decision: Decision | None) -> None:
        self._captions = Captions(structure)
        tools = () if decision is None else decision.tools
        self._verdicts: dict[str, Verdict] = {
            node_id: tool.verdict for tool in tools for node_id in tool.node_ids
        }
        self._is_decided = decision is not None
        self._mismatches: dict[str, list[str]] = {}
        for edge in structure.edges:
            for one in edge.field_mapping:
                if not one.type_compatible:
                    mismatch = f"types differ: {edge.from_}'s {one.from_field} → {one.to_field}"
                    self._mismatches.setdefault(edge.to, []).append(mismatch)

    def of(self, line: _Line, room: int) -> list[Text]:
        """The lines of one row, none wider than `room`."""
        way = Text() if line.way is None else Text(f"{short(line.way.label, 40)} → ", "cyan")
        match line.row:
            case BranchRow(label=label, ends=ends):
                words = Text(short(label, room), "cyan")
                return [words.append(" → ends here", "dim") if ends else words]
            case JumpRow(node_id=node_id, back=back):
                return [way.append(f"{'back' if back else 'on'} to {short(node_id, 20)}", "dim")]
            case NodeRow(node=TaskNode() | CapabilityNode() as node, ends=ends):
                return self._call(node, room, ends=ends)
            case NodeRow():
                return [way.append_text(self._other(line.row, room - way.cell_len))]

    def unknown(self, call: DynamicCall, room: int) -> Text:
        """A call whose tool is known only at run time."""
        mark, colour = MARKS["ask"]
        where = f"  line {call.line}, known when it runs"
        words = Text(f"{mark} " if self._is_decided else "", colour)
        words.append(short(call.expression, max(20, room - len(where) - 2)), "yellow")
        return words.append(where, "dim")

    def _other(self, row: NodeRow, room: int) -> Text:
        """A node without a call."""
        tail = Text(f"  line {row.node.line}", "dim")
        if row.only_on is not None:
            tail.append(f", on only if {row.only_on}", "cyan")
        tail.append(", ends here" if row.ends else "", "dim")
        words = Text(f"{short(row.node.id, 20)} ", "bold")
        limit = max(12, room - words.cell_len - tail.cell_len)
        return words.append(self._captions.of(row.node, limit), "yellow").append_text(tail)

    def _call(self, node: TaskNode | CapabilityNode, room: int, *, ends: bool) -> list[Text]:
        verdict = self._verdicts.get(node.id)
        mark, colour = MARKS[verdict] if verdict is not None else ("", "magenta")
        head = Text(f"{mark} " if mark else "", colour)
        head.append(f"{short(node.id, 20)} ", "bold").append(self._captions.of(node, 60), colour)
        place = Text(f"  {_place(node)}{', ends here' if ends else ''}", "dim")
        given = {
            short(name, _LONGEST_ARGUMENT): argument_text(value, _LONGEST_ARGUMENT)
            for name, value in arguments_of(node).items()
        }
        mismatches = self._mismatches.get(node.id, [])
        warnings = [Text(f"  {short(one, room - 2)}", "red") for one in mismatches]
        inline = f"({', '.join(f'{name}: {value}' for name, value in given.items())})"
        whole = Text.assemble(head, inline, place)
        if whole.cell_len <= room:
            return [whole, *warnings]
        listed = [Text(f"  {short(f'{name}: {value}', room - 2)}") for name, value in given.items()]
        return [head.append_text(place), *listed, *warnings]


def _place(node: TaskNode | CapabilityNode) -> str:
    """`line 2 via line 6 → 9`: the function invocations that lead to the call, outermost first."""
    via = " → ".join(str(position.line) for position in node.via)
    return f"line {node.line}{f' via line {via}' if via else ''}"
