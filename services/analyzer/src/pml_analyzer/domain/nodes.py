"""Nodes pass: ids in source order, one counter per kind, and the nodes themselves."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pml_analyzer.domain.arguments import ArgumentReader
from pml_analyzer.domain.calls import Calls, CallSite
from pml_analyzer.domain.choices import arms, condition_of
from pml_analyzer.syntax.tree import Node, Tree
from pml_common.contracts.structure import DecisionNode, DynamicCall, TaskNode


@dataclass(frozen=True)
class Numbered:
    """What makes nodes, by id."""

    sites: Mapping[str, CallSite]
    decisions: Mapping[str, Node]

    @cached_property
    def tasks(self) -> Mapping[int, str]:
        """Task ids by index of the call's syntax node."""
        return {site.call.index: node_id for node_id, site in self.sites.items()}

    @cached_property
    def branches(self) -> Mapping[int, str]:
        """Decision ids by index of the syntax node."""
        return {node.index: node_id for node_id, node in self.decisions.items()}


def number(tree: Tree, calls: Calls) -> Numbered:
    """Give ids: n1 n2 … to calls, d1 d2 … to decisions."""
    sites = sorted(calls.sites, key=lambda site: site.call.index)
    decisions = _decisions(tree, calls)
    return Numbered(
        {f"n{count}": site for count, site in enumerate(sites, start=1)},
        {f"d{count}": node for count, node in enumerate(decisions, start=1)},
    )


def _decisions(tree: Tree, calls: Calls) -> list[Node]:
    """Every if; a conditional expression where its arms make calls, else it chooses values only."""
    indexes = sorted([site.call.index for site in calls.sites] + [n.index for n in calls.dynamic])

    def makes_calls(node: Node) -> bool:
        first = bisect_left(indexes, node.index)
        return first < len(indexes) and indexes[first] < node.stop

    ternaries = (n for n in tree.of("ternary_expression") if any(map(makes_calls, arms(n))))
    return sorted([*tree.of("if_statement"), *ternaries], key=lambda node: node.index)


def nodes_of(
    tree: Tree, numbered: Numbered, reader: ArgumentReader
) -> tuple[TaskNode | DecisionNode, ...]:
    """All nodes in source order."""
    found: list[tuple[int, TaskNode | DecisionNode]] = []
    for node_id, site in numbered.sites.items():
        line, column = tree.position(site.callee)
        arguments = reader.read(site.argument)
        task = TaskNode(
            id=node_id, line=line, column=column, tool=site.tool_id, arguments=arguments
        )
        found.append((site.call.index, task))
    for node_id, node in numbered.decisions.items():
        line, column = tree.position(node)
        shown = reader.expression(condition_of(node))
        decision = DecisionNode(id=node_id, line=line, column=column, condition=shown)
        found.append((node.index, decision))
    return tuple(node for _, node in sorted(found, key=lambda pair: pair[0]))


def dynamic_calls(tree: Tree, calls: Calls, reader: ArgumentReader) -> tuple[DynamicCall, ...]:
    """The calls that only the run can name, in source order."""
    found: list[DynamicCall] = []
    for node in calls.dynamic:
        line, column = tree.position(node)
        found.append(DynamicCall(expression=reader.expression(node), line=line, column=column))
    return tuple(found)
