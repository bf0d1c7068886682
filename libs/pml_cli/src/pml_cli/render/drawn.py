"""Rendering of a capability's definition and of its invocations as trees."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from rich.tree import Tree

from pml_cli.client import Json
from pml_cli.markup import escape
from pml_cli.render.values import milliseconds


def definition_tree(view: Json) -> Tree:
    """The capability with each tool and capability that it uses, and what leads from each."""
    nodes, edges = _elements(view)
    labels = {str(node["id"]): str(node["label"]) for node in nodes}
    root, *others = nodes
    tree = Tree(f"[bold]{escape(str(root['label']))}[/] version {view['version']}")
    for node in others:
        sites = ", ".join(cast(list[str], node["node_ids"]))
        kind = "" if node["kind"] == "tool" else "capability "
        branch = tree.add(f"{kind}[bold]{escape(str(node['label']))}[/] [dim]{escape(sites)}[/]")
        _add_edges(branch, node, edges, labels)
    _add_edges(tree, root, [each for each in edges if each["type"] != "contains"], labels)
    return tree


def invocation_tree(view: Json) -> Tree:
    """The runs, the earliest first, with their calls by start; `∥` marks parallel ones."""
    nodes, _ = _elements(view)
    inside: dict[object, list[Json]] = {}
    for node in nodes:
        inside.setdefault(node["parent"], []).append(node)
    tree = Tree(f"[bold]{escape(str(view['name']))}[/] {view['runs']} of {view['total']} runs")
    for run in inside.get(None, ()):
        began = datetime.fromtimestamp(cast(float, run["started_at"]) / 1000, UTC)
        head = (
            f"{_mark(run)} [bold]{escape(str(run['label']))}[/] [dim]{began:%Y-%m-%d %H:%M:%S}Z[/]"
        )
        branch = tree.add(f"{head} [cyan]{_duration(run)}[/]")
        _add_calls(branch, run, cast(float, run["started_at"]), inside)
    return tree


def left_out(view: Json) -> str:
    """Say that a view does not have everything; empty if it does."""
    return "" if view["complete"] else "[dim]not everything is shown[/]"


def _add_calls(
    branch: Tree, caller: Json, since: float, inside: Mapping[object, Sequence[Json]]
) -> None:
    for call in inside.get(caller["id"], ()):
        after = milliseconds(cast(float, call["started_at"]) - since)
        parallel = " [yellow]∥[/]" if call["parallel"] else ""
        mock = " [yellow]mock[/]" if call["mocked"] else ""
        label = escape(str(call["label"]))
        added = branch.add(
            f"{_mark(call)} {label} [cyan]{_duration(call)}[/] [dim]at {after}[/]{parallel}{mock}"
        )
        _add_calls(added, call, since, inside)


def _add_edges(branch: Tree, node: Json, edges: Sequence[Json], labels: Mapping[str, str]) -> None:
    for edge in edges:
        if edge["source"] == node["id"]:
            coverage = f" ({edge['coverage']})" if edge["coverage"] else ""
            maybe = " maybe" if edge["conditional"] else ""
            target = escape(labels[str(edge["target"])])
            branch.add(f"[dim]{edge['type']}{coverage}{maybe} →[/] {target}")


def _elements(view: Json) -> tuple[Sequence[Json], Sequence[Json]]:
    elements = cast(Mapping[str, Sequence[Mapping[str, Json]]], view["elements"])
    nodes, edges = elements["nodes"], elements["edges"]
    return [each["data"] for each in nodes], [each["data"] for each in edges]


def _mark(node: Json) -> str:
    return "[green]✓[/]" if node["success"] else f"[red]✗ {escape(str(node['error_kind']))}[/]"


def _duration(node: Json) -> str:
    return milliseconds(cast(float, node["duration_ms"]))
