"""Elements of drawn graphs, in the form that Cytoscape reads as `elements`."""

from typing import Literal
from uuid import UUID

from pydantic import Field

from pml_common.contracts.base import Contract
from pml_common.contracts.cursors import PlaceCursor
from pml_common.contracts.dependencies import EdgeSource
from pml_common.contracts.structure import Coverage, FieldMapping

NodeKind = Literal["capability", "tool"]


class DefinitionNodeData(Contract):
    """A tool or a capability: `id` is that of the graph, `server:tool` or the id of a behaviour; of
    a capability without one it is its name. `node_ids` are the call sites that it stands for."""

    id: str
    label: str
    kind: NodeKind
    capability_id: UUID | None = None
    node_ids: tuple[str, ...] = ()


class DefinitionNode(Contract):
    """A node; `classes` are separated by blanks: its kind, and `root` for the capability itself."""

    data: DefinitionNodeData
    classes: str


class DefinitionEdgeData(Contract):
    """A relation between two nodes. `contains`: the capability calls the other; `provides`: the
    result of the one is used by the other, by these fields; `dependency`: the program reaches the
    other after the one, with no call between, only under a condition if it is `conditional`; or the
    registry has the dependency between the two capabilities. `edge_source` and `observed_count` are
    the registry's, if it has the edge."""

    id: str
    source: str
    target: str
    type: Literal["contains", "provides", "dependency"]
    conditional: bool = False
    coverage: Coverage | None = None
    field_mapping: tuple[FieldMapping, ...] = ()
    edge_source: EdgeSource | None = None
    observed_count: int = Field(default=0, ge=0)


class DefinitionEdge(Contract):
    """An edge; `classes`: its type, and `conditional`."""

    data: DefinitionEdgeData
    classes: str


class DefinitionElements(Contract):
    """Nodes, the capability first and the others in the order of the program, and edges."""

    nodes: tuple[DefinitionNode, ...]
    edges: tuple[DefinitionEdge, ...]


class DefinitionView(Contract):
    """A capability's structure with each tool and capability once. `complete`: nothing was left
    out."""

    capability_id: UUID
    name: str
    version: int
    elements: DefinitionElements
    total_nodes: int = Field(ge=1)
    total_edges: int = Field(ge=0)
    complete: bool


class InvocationNodeData(Contract):
    """One run of the capability, or one call that was made in it: `id` is the name of what was
    called and its number in this view, in the order of time; `parent` the run or capability that
    called it. Times are in milliseconds, `started_at` and `ended_at` since 1970. `sequence` counts
    the calls of the same caller by their start, from 1. `parallel`: it overlaps another call of its
    caller. `node_id` and `occurrence` are the call site, if known."""

    id: str
    parent: str | None = None
    label: str
    kind: NodeKind
    tool: str | None = None
    capability_id: UUID | None = None
    trace_id: UUID
    workflow_id: UUID
    node_id: str | None = None
    occurrence: int | None = None
    sequence: int = Field(ge=1)
    started_at: float
    ended_at: float
    duration_ms: float
    success: bool
    error_kind: str | None = None
    parallel: bool = False
    mocked: bool = False
    dry_run: bool = False


class InvocationNode(Contract):
    """A node; `classes`: its kind, `success` or `failure`, and `run`, `parallel`, `mocked` where
    they hold."""

    data: InvocationNodeData
    classes: str


class InvocationEdgeData(Contract):
    """The second call began when the first had ended, `gap_ms` later; both are of one caller, and
    no third lies between."""

    id: str
    source: str
    target: str
    type: Literal["sequence"] = "sequence"
    gap_ms: float = Field(ge=0)


class InvocationEdge(Contract):
    """An edge; `classes`: its type."""

    data: InvocationEdgeData
    classes: str = "sequence"


class InvocationElements(Contract):
    """Nodes, callers before what they called, each caller's calls by their start; and edges."""

    nodes: tuple[InvocationNode, ...]
    edges: tuple[InvocationEdge, ...]


class InvocationsView(Contract):
    """A page of a capability's runs, the newest, with all calls in them. `total` counts the runs;
    with `next_cursor` there are more. `complete`: nothing of these runs was left out."""

    capability_id: UUID
    name: str
    elements: InvocationElements
    runs: int = Field(ge=0)
    total: int = Field(ge=0)
    next_cursor: PlaceCursor | None = None
    complete: bool
