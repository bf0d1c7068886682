"""Rendering of the calls of an approval, with every argument."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pml_cli.client import Json
from pml_cli.markup import escape

_INDENT = "  "


def call_lines(approval: Json, deep: int = 1) -> list[str]:
    """One line per call and argument; calls that need approval are marked."""
    calls = cast(Sequence[Json], approval.get("calls") or ())
    lines = [line for call in calls for line in _call(call, _INDENT * deep)]
    for call in cast(Sequence[Json], approval.get("dynamic_calls") or ()):
        where = f"line {call['line']}: {call['expression']}"
        lines.append(f"{_INDENT * deep}[yellow]?[/] {escape(where)}, known when it runs")
    if approval.get("complete") is False:
        lines.append(f"{_INDENT * deep}[red]there are more calls than can be shown[/]")
    return lines


def _call(call: Json, indent: str) -> Iterator[str]:
    asks = call["verdict"] == "ask"
    mark = "[yellow]?[/]" if asks else "[green]✓[/]"
    within = f" in {call['within']}" if call.get("within") else ""
    place = "" if call["line"] is None else f"line {call['line']}{_column(call)}{within}, "
    caption = f"{call['node_id']} {call['tool']}"
    yield f"{indent}{mark} [bold]{escape(caption)}[/]  [dim]{escape(place)}{call['how_often']}[/]"
    if call.get("why"):
        yield f"{indent}{_INDENT}[yellow]{escape(str(call['why']))}[/]"
    for argument in cast(Sequence[Json], call["arguments"]):
        yield from _argument(argument, indent + _INDENT)


def _column(call: Json) -> str:
    return "" if call["column"] is None else f":{call['column']}"


def _argument(argument: Json, indent: str) -> Iterator[str]:
    name, text = str(argument["name"]), argument.get("text")
    head = f"{escape(name)} = " if name else "or "
    said = "" if text is None else f"{escape(str(text))}  "
    marks = cast(Sequence[str], argument.get("marks") or ())
    warned = "".join(f"  [red]! {escape(mark)}[/]" for mark in marks)
    yield f"{indent}{head}{said}[dim]{escape(str(argument['words']))}[/]{warned}{_cut(argument)}"
    for part in cast(Sequence[Json], argument.get("parts") or ()):
        yield from _argument(part, indent + _INDENT)


def _cut(argument: Json) -> str:
    cut = argument.get("cut")
    if not isinstance(cut, Mapping):
        return ""
    known = cast(Json, cut)
    return f"  [red]cut, {known['length']:,} characters: --full[/]"
