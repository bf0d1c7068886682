"""A structure as a networkx graph: layers, reachability, dominators."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, TypeAlias

import networkx as nx

from pml_common.contracts.structure import Edge, EdgeType, LoopNode, StaticStructure

Graph: TypeAlias = "nx.DiGraph[str]"

FLOW: Final[Collection[EdgeType]] = ("sequence", "conditional", "loop_body")
"""The edges along which a program runs."""


def digraph(structure: StaticStructure, types: Collection[EdgeType] | None = None) -> Graph:
    """Build a graph of node ids, each with its contract as `node`; one edge for each related pair,
    with the contract edges of these types (None: all) between the two as `edges`, in their order.

    Ids that only edges name are left out with these edges.
    """
    graph: Graph = nx.DiGraph()
    for node in structure.nodes:
        graph.add_node(node.id, node=node)
    between: dict[tuple[str, str], list[Edge]] = {}
    for edge in structure.edges:
        known = edge.from_ in graph and edge.to in graph
        if known and (types is None or edge.type in types):
            between.setdefault((edge.from_, edge.to), []).append(edge)
    for (start, end), edges in between.items():
        graph.add_edge(start, end, edges=tuple(edges))
    return graph


def layers(
    structure: StaticStructure, types: Collection[EdgeType] = FLOW
) -> tuple[tuple[str, ...], ...]:
    """Return ids by the maximum number of predecessors, each layer in source order.

    Back edges of loops are left out; nodes without predecessors are in the first layer.
    """
    graph = digraph(structure, types)
    graph.remove_edges_from(list(_back_edges(graph)))
    place = {node_id: position for position, node_id in enumerate(graph)}
    found = nx.topological_generations(graph)
    return tuple(tuple(sorted(layer, key=place.__getitem__)) for layer in found)


def reachable(
    structure: StaticStructure, node_id: str, types: Collection[EdgeType] = FLOW
) -> frozenset[str]:
    """Return the nodes that may follow a node, itself too where a loop leads back to it.

    Raises KeyError on an unknown id.
    """
    graph = digraph(structure, types)
    if node_id not in graph:
        raise KeyError(node_id)
    return frozenset(end for _, end in nx.edge_bfs(graph, node_id))


def dominators(structure: StaticStructure) -> Mapping[str, str | None]:
    """Return for each id its immediate dominator; None: the start alone."""
    graph, start = _with_start(digraph(structure, FLOW))
    nearest = nx.immediate_dominators(graph, start)
    return {
        node.id: None if nearest[node.id] == start else nearest[node.id] for node in structure.nodes
    }


def _back_edges(graph: Graph) -> Iterator[tuple[str, str]]:
    """Return the back edges of a depth-first visit from the entries."""
    graph, start = _with_start(graph)
    open_: set[str] = set()
    for begin, end, step in nx.dfs_labeled_edges(graph, start):
        if step == "forward":
            open_.add(end)
        elif step == "reverse":
            open_.discard(end)
        elif end in open_:
            yield begin, end


def _with_start(graph: Graph) -> tuple[Graph, str]:
    """Return the graph with an extra start node before its entries, and that node's id."""
    start = "start"
    while start in graph:
        start += "_"
    whole = graph.copy()
    whole.add_node(start)
    whole.add_edges_from((start, entry) for entry in _entries(graph))
    return whole, start


def _entries(graph: Graph) -> Iterator[str]:
    """Return the entries: nodes without predecessors, then unreached ones, loops before others and
    outer ones before inner ones, in source order."""

    def rank(node_id: str) -> int:
        if graph.in_degree(node_id) == 0:
            return 0
        return 1 if isinstance(graph.nodes[node_id]["node"], LoopNode) else 2

    reached: set[str] = set()
    for node_id in sorted(graph, key=rank):
        if node_id not in reached:
            yield node_id
            reached.add(node_id)
            reached.update(end for _, end in nx.edge_bfs(graph, node_id))
