"""Nodes pass: the nodes of a structure, from the syntax that makes them."""

from collections.abc import Mapping
from typing import Final, TypedDict

from pml_analysis.arguments.arguments import ArgumentReader
from pml_analysis.names.callbacks import method_of
from pml_analysis.names.choices import condition_of
from pml_analysis.structure.calls import Calls, CallSite
from pml_analysis.structure.expansion import ExpandedNode, Expansion, Instance
from pml_analysis.structure.marks import Mark, combinator, combined
from pml_analysis.structure.repeats import repeats
from pml_analysis.structure.units import Unit
from pml_analysis.syntax.tree import Node, Tree
from pml_common.contracts import structure
from pml_common.contracts.structure import (
    CapabilityNode,
    DecisionNode,
    DynamicCall,
    ForkNode,
    JoinNode,
    LoopNode,
    Position,
    TaskNode,
)


class _Place(TypedDict):
    line: int
    column: int


_KINDS: Final = {"do_statement": "do-while", "for_statement": "for", "while_statement": "while"}


def nodes_of(
    tree: Tree, calls: Calls, expansion: Expansion, reader: ArgumentReader
) -> tuple[structure.Node, ...]:
    """Return all nodes in source order, with functions where they are entered."""
    sites = {site.call.index: site for site in calls.sites}
    describer = _Describer(tree, sites, expansion, reader)
    return tuple(describer.node(node_id, made) for node_id, made in expansion.nodes.items())


class _Describer:
    def __init__(
        self,
        tree: Tree,
        sites: Mapping[int, CallSite],
        expansion: Expansion,
        reader: ArgumentReader,
    ) -> None:
        self._tree = tree
        self._sites = sites
        self._expansion = expansion
        self._reader = reader

    def node(self, node_id: str, made: ExpandedNode) -> structure.Node:
        mark, instance = made.by, made.instance
        if isinstance(mark, Unit):
            return self._recursion(node_id, mark)
        match mark.kind:
            case "decision":
                place, condition = self._place(mark.node), self._condition(mark.node)
                return DecisionNode(id=node_id, **place, condition=condition)
            case "loop":
                return self._loop(node_id, mark.node)
            case "parallel":
                return self._parallel(node_id, mark, joins=made.joins)
            case _:
                return self._call(node_id, self._sites[mark.node.index], instance)

    def _place(self, node: Node) -> _Place:
        line, column = self._tree.position(node)
        return {"line": line, "column": column}

    def _text(self, node: Node) -> str:
        return self._reader.expression(node)

    def _call(self, node_id: str, site: CallSite, instance: Instance) -> TaskNode | CapabilityNode:
        called = {
            **self._place(site.callee),
            "id": node_id,
            "arguments": self._reader.read(site, instance),
            "via": self._via(instance),
            "repeats": repeats(self._expansion, site.call, instance),
        }
        if site.capability is not None:
            return CapabilityNode.model_validate({**called, "name": site.capability})
        return TaskNode.model_validate({**called, "tool": site.tool_id})

    def _via(self, instance: Instance) -> tuple[Position, ...]:
        """Return the invocations that lead into an instance, outermost first."""
        found: list[Position] = []
        while instance.caller is not None:
            if instance.place is not None and instance.is_invoked:
                found.append(Position(**self._place(instance.place)))
            instance = instance.caller
        return tuple(reversed(found))

    def _condition(self, node: Node) -> str:
        match node.kind:
            case "if_statement" | "ternary_expression":
                return self._text(condition_of(node))
            case "switch_statement":
                return self._text(node["value"].inner)
            case "try_statement":
                return "try"
            case _:
                left = self._text(node["left"])
                is_nullish = node["operator"].kind.startswith("??")
                return f"{left} == null" if is_nullish else left

    def _loop(self, node_id: str, node: Node) -> LoopNode:
        over = _over(node)
        text = "true" if over.kind == "empty_statement" else self._text(over)
        return LoopNode(id=node_id, **self._place(node), kind=self._kind(node), over=text)

    def _kind(self, loop: Node) -> str:
        if loop.kind == "call_expression":
            return method_of(self._tree, loop) or ""
        if loop.kind != "for_in_statement":
            return _KINDS[loop.kind]
        is_async = any(child.kind == "await" for child in loop.children)
        return "for-await" if is_async else f"for-{loop['operator'].kind}"

    def _recursion(self, node_id: str, unit: Unit) -> LoopNode:
        place = self._place(unit.function)
        return LoopNode(id=node_id, **place, kind="recursion", over=unit.name)

    def _parallel(self, node_id: str, mark: Mark, *, joins: bool) -> ForkNode | JoinNode:
        place = self._place(mark.node)
        if joins:
            return JoinNode(id=node_id, **place)
        given = combined(mark.node)
        is_list = given is None or given.kind == "array"
        over = None if given is None or is_list else self._text(given["function"]["object"])
        kind = combinator(self._tree, mark.node) or "all"
        return ForkNode(id=node_id, **place, kind=kind, over=over)


def _over(loop: Node) -> Node:
    """Return the subject of a loop: a list, or its condition."""
    if loop.kind == "call_expression":
        return loop["function"]["object"]
    return loop["right" if loop.kind == "for_in_statement" else "condition"].inner


def dynamic_calls(tree: Tree, calls: Calls, reader: ArgumentReader) -> tuple[DynamicCall, ...]:
    """Return the calls known only at run time, in source order."""
    found: list[DynamicCall] = []
    for node in calls.dynamic:
        line, column = tree.position(node)
        found.append(DynamicCall(expression=reader.expression(node), line=line, column=column))
    return tuple(found)
