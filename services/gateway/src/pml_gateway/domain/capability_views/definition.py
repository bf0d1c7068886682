"""The definition of a capability as a graph: each tool and capability that it uses once."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from uuid import UUID

from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.dependencies import Dependency
from pml_common.contracts.structure import (
    CallNode,
    CapabilityNode,
    Coverage,
    Edge,
    StaticStructure,
    TaskNode,
)
from pml_gateway.domain.capability_views.elements import (
    DefinitionEdge,
    DefinitionEdgeData,
    DefinitionElements,
    DefinitionNode,
    DefinitionNodeData,
    DefinitionView,
)

_RANKS: Final[Mapping[Coverage | None, int]] = {"strict": 0, "partial": 1, "optional": 2, None: 3}
_FLOW: Final = ("sequence", "conditional", "loop_body")

_Type = Literal["contains", "provides", "dependency"]
_Ends = tuple[str, str, _Type]


@dataclass
class _Drawing:
    """Nodes and edges so far, by id and by ends and type."""

    nodes: dict[str, DefinitionNodeData] = field(default_factory=dict[str, DefinitionNodeData])
    edges: dict[_Ends, DefinitionEdgeData] = field(default_factory=dict[_Ends, DefinitionEdgeData])

    def connect(self, ends: _Ends) -> DefinitionEdgeData | None:
        """Return the edge between two nodes, made if there is none; None from a node to itself."""
        source, target, type_ = ends
        if source == target:
            return None
        made = DefinitionEdgeData(
            id=f"{type_}:{source}>{target}", source=source, target=target, type=type_
        )
        return self.edges.setdefault(ends, made)

    def change(self, ends: _Ends, **changes: object) -> None:
        """Change an edge, if it is one."""
        if (edge := self.connect(ends)) is not None:
            self.edges[ends] = edge.model_copy(update=changes)


def definition_of(
    record: CapabilityRecord,
    dependencies: Iterable[Dependency],
    limit: int,
    edge_limit: int,
    *,
    complete: bool = True,
) -> DefinitionView:
    """Draw a capability: its calls, in the order of its program, and what the registry knows it to
    contain and to depend on besides; `limit` nodes and `edge_limit` edges of them. `complete`: all
    such dependencies were given."""
    drawing, root = _Drawing(), str(record.capability_id)
    drawing.nodes[root] = DefinitionNodeData(
        id=root, label=record.name, kind="capability", capability_id=record.capability_id
    )
    places = _draw_calls(drawing, root, record.structure)
    _draw_flow(drawing, places, record.structure)
    _draw_data(drawing, places, record.structure.edges)
    _draw_dependencies(drawing, root, dependencies)
    nodes = list(drawing.nodes.values())[:limit]
    kept = {node.id for node in nodes}
    edges = [e for e in drawing.edges.values() if e.source in kept and e.target in kept]
    return DefinitionView(
        capability_id=record.capability_id,
        name=record.name,
        version=record.version,
        elements=DefinitionElements(
            nodes=tuple(
                DefinitionNode(data=node, classes=_classes(node.kind, root=node.id == root))
                for node in nodes
            ),
            edges=tuple(
                DefinitionEdge(data=edge, classes=_classes(edge.type, conditional=edge.conditional))
                for edge in edges[:edge_limit]
            ),
        ),
        total_nodes=len(drawing.nodes),
        total_edges=len(drawing.edges),
        complete=complete and len(nodes) == len(drawing.nodes) and len(edges) <= edge_limit,
    )


def _draw_calls(drawing: _Drawing, root: str, structure: StaticStructure) -> Mapping[str, str]:
    """Add what is called; return the node that stands for each call site."""
    places: dict[str, str] = {}
    for call in _calls(structure):
        data = _called(call)
        before = drawing.nodes.setdefault(data.id, data)
        sites = {"node_ids": (*before.node_ids, call.id)}
        drawing.nodes[data.id] = before.model_copy(update=sites)
        places[call.id] = data.id
        drawing.connect((root, data.id, "contains"))
    return places


def _calls(structure: StaticStructure) -> Iterator[CallNode]:
    for node in structure.nodes:
        if isinstance(node, TaskNode | CapabilityNode):
            yield node


def _called(call: CallNode) -> DefinitionNodeData:
    if isinstance(call, TaskNode):
        return DefinitionNodeData(id=call.tool, label=call.tool, kind="tool")
    named = call.capability_id
    return DefinitionNodeData(
        id=named or f"cap:{call.name}",
        label=call.name,
        kind="capability",
        capability_id=None if named is None else UUID(named),
    )


def _draw_flow(drawing: _Drawing, places: Mapping[str, str], structure: StaticStructure) -> None:
    """Add dependencies between calls that follow each other in the program. What leads back, as the
    end of a loop does, is none."""
    order = {node.id: at for at, node in enumerate(structure.nodes)}
    following: dict[str, list[Edge]] = {}
    for edge in structure.edges:
        if edge.type in _FLOW and order.get(edge.from_, -1) < order.get(edge.to, -1):
            following.setdefault(edge.from_, []).append(edge)
    firm: dict[_Ends, bool] = {}
    for site, source in places.items():
        for reached, conditional in _next_calls(site, following, places):
            ends: _Ends = (source, places[reached], "dependency")
            firm[ends] = firm.get(ends, False) or not conditional
    for ends, is_firm in firm.items():
        drawing.change(ends, conditional=not is_firm)


def _next_calls(
    site: str, following: Mapping[str, Sequence[Edge]], places: Mapping[str, str]
) -> Iterator[tuple[str, bool]]:
    """Yield the call sites that come next after one, and whether only under a condition."""
    seen: set[tuple[str, bool]] = set()
    waiting = deque([(site, False)])
    while waiting:
        here, conditional = waiting.popleft()
        for edge in following.get(here, ()):
            step = edge.to, conditional or edge.type == "conditional"
            if step in seen:
                continue
            seen.add(step)
            if edge.to in places:
                yield step
            else:
                waiting.append(step)


def _draw_data(drawing: _Drawing, places: Mapping[str, str], edges: Sequence[Edge]) -> None:
    """Add which results are used by which calls: of several, the best covered."""
    for edge in edges:
        source, target = places.get(edge.from_), places.get(edge.to)
        if edge.type != "provides" or source is None or target is None:
            continue
        ends: _Ends = (source, target, "provides")
        before = drawing.connect(ends)
        if before is not None and _RANKS[edge.coverage] < _RANKS[before.coverage]:
            drawing.change(ends, coverage=edge.coverage, field_mapping=edge.field_mapping)


def _draw_dependencies(drawing: _Drawing, root: str, dependencies: Iterable[Dependency]) -> None:
    """Add what the registry knows the capability to contain and to depend on."""
    for each in dependencies:
        if each.edge_type not in ("contains", "dependency"):
            continue
        data = DefinitionNodeData(
            id=str(each.to_capability_id),
            label=each.to_name,
            kind="capability",
            capability_id=each.to_capability_id,
        )
        drawing.nodes.setdefault(data.id, data)
        drawing.change(
            (root, data.id, each.edge_type),
            edge_source=each.edge_source,
            observed_count=each.observed_count,
        )


def _classes(first: str, **others: bool) -> str:
    return " ".join([first, *(name for name, holds in others.items() if holds)])
