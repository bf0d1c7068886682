"""The graph of a scope: its tools and capabilities with their relations, in networkx."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from pml_common.contracts.dependencies import (
    EdgeSource,
    EdgeType,
    GraphEdge,
    GraphNode,
    GraphPath,
    Hyperedge,
    Hypergraph,
    ShowHypergraph,
)
from pml_common.contracts.structure import Coverage, FieldMapping
from pml_common.contracts.tool import JsonObject

if TYPE_CHECKING:
    import networkx as nx
# At runtime networkx is imported by the first graph: it takes 20 MB.

TYPE_WEIGHTS: Final[Mapping[EdgeType, float]] = {
    "dependency": 1.0,
    "contains": 0.8,
    "provides": 0.7,
    "alternative": 0.6,
    "sequence": 0.5,
}
SOURCE_FACTORS: Final[Mapping[EdgeSource, float]] = {
    "observed": 1.0,
    "inferred": 0.7,
    "template": 0.5,
}

MOST_NODES: Final = 1500
"""Capabilities of a graph, the most used first, and tools, each at most."""

MOST_EDGES: Final = 10_000
"""Relations between capabilities, the most confident first, and between tools, the most observed
first, each at most."""

_DAMPING: Final = 0.85
_ROUNDS: Final = 100
"""Rounds of the power iteration; after them the ranks are exact to 0.85^100."""


@dataclass(frozen=True)
class Node:
    """A tool, with its schemas, or a listed capability, with the tools that it uses; one that is
    `private_to` a principal is shown to nobody else."""

    id: str
    kind: Literal["tool", "capability"]
    name: str
    description: str = ""
    tools: tuple[str, ...] = ()
    input_schema: JsonObject = field(default_factory=dict[str, Any])
    output_schema: JsonObject | None = None
    private_to: str | None = None


@dataclass(frozen=True)
class Relation:
    """An edge between two nodes."""

    from_: str
    to: str
    type: EdgeType
    source: EdgeSource
    observed_count: int = 0
    confidence: float | None = None
    coverage: Coverage | None = None
    field_mapping: tuple[FieldMapping, ...] = ()

    @property
    def weight(self) -> float:
        """The weight of its type times the factor of its source."""
        return TYPE_WEIGHTS[self.type] * SOURCE_FACTORS[self.source]


class NoPath(Exception):
    """No path leads from the one node to the other, or one of them does not exist."""


@dataclass(frozen=True)
class GraphRows:
    """Nodes and relations of a graph. `complete`: nothing was left out."""

    nodes: Sequence[Node]
    relations: Sequence[Relation]
    complete: bool


class ScopeGraph:
    """The graph of one scope, with its PageRank and communities. Immutable."""

    def __init__(self, rows: GraphRows) -> None:
        self._complete = rows.complete
        self._nodes = {node.id: node for node in rows.nodes}
        known = self._nodes.keys()
        found = [each for each in rows.relations if each.from_ in known and each.to in known]
        shown = {(each.from_, each.to) for each in found if each.type == "contains"}
        uses = (each for each in _uses(self._nodes) if (each.from_, each.to) not in shown)
        self.relations = [*found, *uses]

    def __contains__(self, node_id: str) -> bool:
        """Whether there is a node with this id."""
        return node_id in self._nodes

    @cached_property
    def graph(self) -> "nx.MultiDiGraph[str]":
        """All nodes and edges; an edge has its `weight` and its `relation`."""
        import networkx as nx

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        graph.add_nodes_from(sorted(self._nodes))
        for each in self.relations:
            graph.add_edge(each.from_, each.to, each.type, weight=each.weight, relation=each)
        return graph

    @cached_property
    def ranks(self) -> Mapping[str, float]:
        """The PageRank of each node, by weight; they sum up to 1."""
        return pagerank(sorted(self._nodes), self.relations)

    @cached_property
    def communities(self) -> Mapping[str, int]:
        """The number of each node's community, the largest first."""
        import networkx as nx

        if not self.relations:
            return {node: number for number, node in enumerate(sorted(self._nodes))}
        undirected: nx.Graph[str] = nx.Graph()
        undirected.add_nodes_from(self.graph)
        for each in self.relations:
            before = undirected.get_edge_data(each.from_, each.to, {"weight": 0.0})["weight"]
            undirected.add_edge(each.from_, each.to, weight=before + each.weight)
        found = nx.community.louvain_communities(undirected, weight="weight", seed=0)
        in_order = sorted(found, key=lambda members: (-len(members), min(members)))
        return {node: number for number, members in enumerate(in_order) for node in members}

    def shown(self, asked: ShowHypergraph) -> Hypergraph:
        """Return the nodes of highest rank that the principal sees, and the heaviest edges between
        them."""
        hidden = self._hidden(asked.principal)
        seen = [node for node in self._nodes if node not in hidden]
        first = sorted(seen, key=lambda node: (-self.ranks[node], node))[: asked.limit]
        among = {*first}
        total = sum(not hidden & {each.from_, each.to} for each in self.relations)
        between = [each for each in self.relations if each.from_ in among and each.to in among]
        between.sort(key=lambda each: (-each.weight, each.from_, each.to, each.type))
        return Hypergraph(
            nodes=tuple(map(self._node, first)),
            edges=tuple(map(self._edge, between[: asked.edge_limit])),
            hyperedges=tuple(
                Hyperedge(capability_id=node, tools=self._nodes[node].tools)
                for node in first
                if self._nodes[node].kind == "capability"
            ),
            total_nodes=len(seen),
            total_edges=total,
            communities=len({self.communities[node] for node in seen}),
            complete=self._complete,
        )

    def path(self, start: str, end: str, principal: str | None) -> GraphPath:
        """Return the shortest path between two nodes, over nodes that the principal sees. Raises
        NoPath."""
        import networkx as nx

        visible = nx.restricted_view(self.graph, self._hidden(principal), [])
        try:
            nodes = nx.dijkstra_path(visible, start, end, weight=_length)
        except (nx.NetworkXNoPath, nx.NodeNotFound) as error:
            raise NoPath(f"no path leads from {start} to {end}") from error
        pairs = pairwise(nodes)
        edges = [_heaviest(self.graph.get_edge_data(one, other)) for one, other in pairs]
        return GraphPath(
            nodes=tuple(map(self._node, nodes)),
            edges=tuple(map(self._edge, edges)),
            length=sum(1 / each.weight for each in edges),
        )

    def _hidden(self, principal: str | None) -> set[str]:
        """The nodes that a principal does not see; a service, None, sees all."""
        nodes = self._nodes.values() if principal is not None else ()
        return {node.id for node in nodes if node.private_to not in (None, principal)}

    def _node(self, node_id: str) -> GraphNode:
        node = self._nodes[node_id]
        return GraphNode(
            id=node.id,
            kind=node.kind,
            name=node.name,
            description=node.description,
            pagerank=min(1.0, self.ranks[node_id]),
            community=self.communities[node_id],
        )

    def _edge(self, relation: Relation) -> GraphEdge:
        provides = relation.type == "provides"
        return GraphEdge(
            from_=relation.from_,
            to=relation.to,
            type=relation.type,
            source=relation.source,
            weight=relation.weight,
            observed_count=relation.observed_count,
            confidence_score=relation.confidence,
            coverage=relation.coverage,
            field_mapping=relation.field_mapping,
            provider_output_schema=(
                self._nodes[relation.from_].output_schema if provides else None
            ),
            consumer_input_schema=self._nodes[relation.to].input_schema if provides else None,
        )


def pagerank(nodes: Sequence[str], relations: Sequence[Relation]) -> Mapping[str, float]:
    """Return the PageRank of each node by weight, damping 0.85; that of a node without edges goes
    to all. (networkx needs SciPy for it.)"""
    if not nodes:
        return {}
    place, count = {node: at for at, node in enumerate(nodes)}, len(nodes)
    begins = np.array([place[each.from_] for each in relations], dtype=np.intp)
    ends = np.array([place[each.to] for each in relations], dtype=np.intp)
    weights = np.array([each.weight for each in relations], dtype=np.float64)
    leaving = np.bincount(begins, weights, count)
    shares = weights / leaving[begins]
    rank = np.full(count, 1 / count)
    for _ in range(_ROUNDS):
        arriving = np.bincount(ends, rank[begins] * shares, count)
        spread = rank[leaving == 0].sum() / count
        rank = (1 - _DAMPING) / count + _DAMPING * (arriving + spread)
    return dict(zip(nodes, rank.tolist(), strict=True))


def _uses(nodes: Mapping[str, Node]) -> Iterator[Relation]:
    """Yield the relation of each capability to each tool that it uses by its text."""
    for node in nodes.values():
        for tool in node.tools:
            if tool in nodes:
                yield Relation(node.id, tool, "contains", "inferred")


def _length(_: object, __: object, parallel: Mapping[str, Mapping[str, Any]]) -> float:
    return min(1 / edge["weight"] for edge in parallel.values())


def _heaviest(parallel: Mapping[Any, Mapping[str, Any]]) -> Relation:
    relations: list[Relation] = [edge["relation"] for edge in parallel.values()]
    return max(relations, key=lambda each: each.weight)
