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
    """What follows what, top to bottom; branches stand under their decision, and what comes after
    they meet again stands after it."""
    tree = Tree(f"[bold]{escape(title)}")
    drawing = _Drawing(structure)
    for node in structure.nodes:
        if node.id not in drawing.reached:
            drawing.follow(tree, node.id, None)
    for node in structure.nodes:
        drawing.follow(tree, node.id, None)
    if not structure.nodes:
        tree.add("[dim]no tool is called")
    return tree


class _Drawing:
    """Each node once, however many ways lead to it."""

    def __init__(self, structure: StaticStructure) -> None:
        self.nodes = {node.id: node for node in structure.nodes}
        self.onward: dict[str, list[Edge]] = {node.id: [] for node in structure.nodes}
        self.reached: set[str] = set()
        for edge in structure.edges:
            if edge.type in FLOW:
                self.onward[edge.from_].append(edge)
                self.reached.add(edge.to)
        self.drawn: set[str] = set()

    def follow(self, at: Tree, start: str, until: str | None) -> None:
        """Draw the way from `start` on, up to but without `until`."""
        current: str | None = start
        while current is not None and current != until and current not in self.drawn:
            self.drawn.add(current)
            branch = at.add(describe(self.nodes[current]))
            ways = self.onward[current]
            if len(ways) == 1 and ways[0].type == "sequence":
                current = ways[0].to
                continue
            meeting = self._meeting(ways, until)
            for way in ways:
                if way.to != meeting and way.to not in self.drawn:
                    under = branch.add(f"[cyan]{escape(way.outcome)}") if way.outcome else branch
                    self.follow(under, way.to, meeting)
            current = meeting

    def _meeting(self, ways: Sequence[Edge], until: str | None) -> str | None:
        """The first node that more than one of the ways leads to."""
        after = [self._after(way.to) for way in ways]
        for node_id in self.nodes:
            if node_id not in self.drawn and sum(node_id in seen for seen in after) > 1:
                return node_id
        return until

    def _after(self, start: str) -> set[str]:
        seen = {start}
        pending = [start]
        while pending:
            for edge in self.onward[pending.pop()]:
                if edge.to not in seen:
                    seen.add(edge.to)
                    pending.append(edge.to)
        return seen


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
