"""A static structure as a tree: what follows what, and under which condition."""

from collections.abc import Sequence

from rich.markup import escape
from rich.tree import Tree

from pml_cli.render.values import short
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    DecisionNode,
    Edge,
    LiteralArgument,
    LoopNode,
    Node,
    ObjectArgument,
    ParameterArgument,
    StaticStructure,
    TaskNode,
)

FLOW = ("sequence", "conditional", "loop_body")


def structure_tree(structure: StaticStructure, title: str) -> Tree:
    """The nodes from those nothing leads to, branches indented under their decision."""
    tree = Tree(f"[bold]{escape(title)}")
    flow = [edge for edge in structure.edges if edge.type in FLOW]
    reached = {edge.to for edge in flow}
    nodes = {node.id: node for node in structure.nodes}
    drawn: set[str] = set()
    for node in structure.nodes:
        if node.id not in reached or (node.id not in drawn and not flow):
            _draw(tree, node.id, nodes, flow, drawn)
    for node in structure.nodes:
        if node.id not in drawn:
            _draw(tree, node.id, nodes, flow, drawn)
    if not structure.nodes:
        tree.add("[dim]no tool is called")
    return tree


def _draw(
    at: Tree, node_id: str, nodes: dict[str, Node], flow: Sequence[Edge], drawn: set[str]
) -> None:
    pending: list[tuple[Tree, str, str | None]] = [(at, node_id, None)]
    while pending:
        parent, current, outcome = pending.pop()
        if current in drawn:
            parent.add(f"{_outcome(outcome)}[dim]→ {current}")
            continue
        drawn.add(current)
        branch = parent.add(_outcome(outcome) + describe(nodes[current]))
        onward = [edge for edge in flow if edge.from_ == current]
        for edge in reversed(onward):
            under = branch if edge.type != "sequence" else parent
            pending.append((under, edge.to, edge.outcome))


def _outcome(outcome: str | None) -> str:
    return "" if outcome is None else f"[cyan]{escape(outcome)}[/] "


def describe(node: Node) -> str:
    """One line: id, what it is, where it stands."""
    where = f"[dim]line {node.line}[/]"
    match node:
        case TaskNode():
            what = f"[green]{escape(node.tool)}[/]{_arguments(node.arguments)}"
        case CapabilityNode():
            what = f"[magenta]{escape(node.name)}[/]{_arguments(node.arguments)}"
        case DecisionNode():
            what = f"[yellow]if[/] {escape(short(node.condition, 60))}"
        case LoopNode():
            what = f"[yellow]{escape(node.kind)}[/] {escape(short(node.over, 60))}"
        case _:
            what = f"[yellow]{node.type}[/]"
    return f"[bold]{node.id}[/] {what} {where}"


def _arguments(arguments: dict[str, Argument]) -> str:
    listed = ", ".join(f"{name}: {_argument(value)}" for name, value in arguments.items())
    return f"({escape(listed)})"


def _argument(argument: Argument) -> str:
    match argument:
        case LiteralArgument():
            return short(argument.value, 32)
        case ParameterArgument():
            return f"<{argument.parameter_name}>"
        case ObjectArgument():
            inner = ", ".join(f"{k}: {_argument(v)}" for k, v in argument.fields.items())
            return f"{{{inner}}}"
        case ArrayArgument():
            return f"[{', '.join(_argument(item) for item in argument.items)}]"
        case _:
            return short(argument.expression, 40)
