"""Rendering of an approval between two layers of a DAG."""

from collections.abc import Mapping
from typing import cast

from pml_cli.client import Json
from pml_cli.markup import escape
from pml_cli.render.values import short

_LONGEST = 240


def layer_lines(approval: Json) -> list[str]:
    """The previous layer's results and the next layer's tasks, one per line; empty when no layer is
    pending."""
    layer = approval.get("layer")
    if not isinstance(layer, Mapping):
        return []
    shown = cast(Mapping[str, list[Json]], layer)
    lines = [f"  [green]done[/] {_task(one)} = {_shown(one['preview'])}" for one in shown["done"]]
    for one in shown["next"]:
        mark = "[yellow]next, elevated[/]" if one["elevated"] else "[dim]next[/]"
        lines.append(f"  {mark} {_task(one)}")
        given = cast(Mapping[str, Json], one["arguments"])
        lines += [f"    [dim]{_shown(name)}[/] = {_argument(given[name])}" for name in given]
    return lines


def _task(one: Json) -> str:
    return _shown(f"{one['task']} ({one['tool']})")


def _argument(argument: Json) -> str:
    """A known value; else the expression in the program."""
    if argument["type"] == "literal":
        return _shown(argument["value"])
    if argument["type"] == "parameter":
        return f"the caller's {_shown(argument['parameter_name'])}"
    if argument["type"] == "reference":
        return _shown(argument["expression"])
    return "[dim]known in part only[/]"


def _shown(value: object) -> str:
    return escape(short(value, _LONGEST))
