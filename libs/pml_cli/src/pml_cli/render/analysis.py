"""Rendering of an analysis for a person who has to approve it."""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from pml_analysis.analysis import Analysis, Rejection
from pml_cli.render.structure import MARKS, structure_tree
from pml_common.contracts.decision import Decision, ToolDecision
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import JsonObject
from pml_common.text.short import short

_LONGEST: Final = 2_000
_MOST_REACHED: Final = 8


def analysis_report(found: Analysis, title: str) -> list[RenderableType]:
    """The tree, the parameters, the decision with its reasons, and each tool's possible effects."""
    parts: list[RenderableType] = [
        structure_tree(found.structure, title, found.decision, found.dynamic_calls),
        Text(),
    ]
    parts += _parameters(found.parameters_schema)
    parts += _decision(found.decision)
    parts += [DiagnosticLines(each) for each in found.diagnostics]
    return parts


def rejection_report(found: Rejection) -> list[RenderableType]:
    """The diagnostics of a rejected program, with places."""
    return [Text("rejected", "bold red"), *(DiagnosticLines(each) for each in found.diagnostics)]


def _parameters(schema: JsonObject) -> Iterator[RenderableType]:
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(properties, dict) and properties:
        names = required if isinstance(required, list) else []
        shown = [_parameter(name, one, name in names) for name, one in properties.items()]
        yield _row("takes", ", ".join(shown))


def _parameter(name: str, schema: JsonValue, required: bool) -> str:
    """`limit?: number = 5`."""
    known = schema if isinstance(schema, dict) else {}
    kind = known.get("type")
    said = f": {short(kind, 20)}" if isinstance(kind, str) else ""
    default = f" = {short(str(known['default']), 30)}" if "default" in known else ""
    return f"{short(name, 40)}{'' if required else '?'}{said}{default}"


def _row(head: str, text: str) -> RenderableType:
    grid = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0))
    grid.add_row(Text(head, "bold"), Text(text))
    return grid


def _decision(decision: Decision) -> Iterator[RenderableType]:
    mark, colour = MARKS[decision.verdict]
    yield Text.assemble(("decision ", "bold"), (decision.verdict, f"bold {colour}"))
    reasons = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 1, 0, 0))
    for reason in decision.reasons:
        reasons.add_row(Text(f"  {mark}", colour), Text(short(reason, _LONGEST)))
    yield reasons
    called = [tool for tool in decision.tools if tool.node_ids]
    if called:
        yield Text("tools", "bold")
        yield _tools(called)
    reached = [tool.tool for tool in decision.tools if not tool.node_ids]
    if reached:
        yield from _within_reach(reached)


def _tools(tools: Sequence[ToolDecision]) -> RenderableType:
    columns = (Column(no_wrap=True), Column(overflow="fold"), Column(overflow="fold"), Column())
    grid = Table.grid(*columns, padding=(0, 2, 0, 0))
    for tool in tools:
        mark, colour = MARKS[tool.verdict]
        why = tool.reason.rsplit(". ", 1)[-1]  # the first sentence repeats the call in the tree
        grid.add_row(
            Text(f"  {mark}", colour),
            Text(short(tool.tool, 120)),
            Text(", ".join(tool.node_ids), "bold"),
            Text(short(why, 240), "dim"),
        )
    return grid


def _within_reach(tools: Sequence[str]) -> Iterator[RenderableType]:
    """Tools that calls known only at run time may reach without approval."""
    named = ", ".join(short(tool, 60) for tool in tools[:_MOST_REACHED])
    more = len(tools) - _MOST_REACHED
    rest = f" and {more} more" if more > 0 else ""
    yield _row("reachable by calls known when they run:", f"{named}{rest}")


class DiagnosticLines:
    """A message with its place, and the source line with a marker below."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self._diagnostic = diagnostic

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        diagnostic = self._diagnostic
        colour = "red" if diagnostic.severity == "error" else "yellow"
        place = (f"{diagnostic.line}:{diagnostic.column} ", "bold")
        yield Text.assemble(
            place, (diagnostic.severity, colour), ": ", short(diagnostic.message, _LONGEST)
        )
        if (
            diagnostic.source_line is not None
            and diagnostic.column <= len(diagnostic.source_line) + 1
        ):
            line, before = _excerpt(
                diagnostic.source_line, diagnostic.column - 1, options.max_width - 4
            )
            yield Text(f"  {line}", "dim", no_wrap=True, overflow="crop")
            yield Text(f"  {' ' * before}^", colour, no_wrap=True, overflow="crop")


def _excerpt(line: str, at: int, width: int) -> tuple[str, int]:
    """The part of a line around a column, one cell per character; and the cells before the
    column."""
    start = max(0, at - width // 2) if len(line) > width else 0
    shown = "".join(char if char.isprintable() else " " for char in line[start : start + width])
    return shown, cell_len(shown[: at - start])
