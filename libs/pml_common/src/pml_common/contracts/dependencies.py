"""Contracts of the registry: dependencies between capabilities, and the graph of a scope.

The queries are those of a `principal`, who does not see what is private to others; without one, a
service asks for itself and sees all.
"""

from typing import ClassVar, Literal
from uuid import UUID

from pydantic import AliasChoices, AwareDatetime, Field

from pml_common.contracts.base import Contract, Event, Query
from pml_common.contracts.cursors import PlaceCursor
from pml_common.contracts.structure import Coverage, FieldMapping
from pml_common.contracts.tool import JsonObject

DependencyType = Literal["contains", "sequence", "dependency", "alternative"]
"""`contains`: the first calls the second; `dependency`: it needs the second; `sequence`: both work
with the same tools; `alternative`: both serve the same intent with other tools."""

EdgeSource = Literal["template", "inferred", "observed"]
"""Stated by a person, derived by a rule, or seen in at least 3 runs."""

EdgeType = Literal["contains", "sequence", "dependency", "alternative", "provides"]
"""An edge of the graph; between two tools there is no `alternative`."""

Direction = Literal["in", "out", "both"]


class GraphChanged(Event):
    """The nodes or edges of the scope's graph changed, by the handling of `cause_id`; readers drop
    their cached graphs."""

    entity_field: ClassVar[str] = "cause_id"

    cause_id: UUID


class Dependency(Contract):
    """A directed relation between two behaviours of a scope, under the names of records that have
    them. `observed_count`: the runs that showed it; `confidence_score` in [0, 1]."""

    from_capability_id: UUID
    from_name: str
    to_capability_id: UUID
    to_name: str
    edge_type: DependencyType
    edge_source: EdgeSource
    observed_count: int = Field(ge=0)
    confidence_score: float = Field(ge=0, le=1)
    created_at: AwareDatetime
    last_observed: AwareDatetime


class AddDependency(Query):
    """Add a dependency of one capability, by id or name, on another. Idempotent: one that exists
    stays as it is."""

    reference: str
    to: str
    edge_type: DependencyType
    edge_source: EdgeSource = "template"
    principal: str | None = None


class AddedDependency(Contract):
    """The dependency; `created` is false if it existed. `warning`: it closes a cycle, which only
    dependencies that are no templates may."""

    created: bool
    dependency: Dependency
    warning: str | None = None


class RemoveDependency(Query):
    """Remove the dependencies of one capability on another, or the one of this type."""

    reference: str
    to: str
    edge_type: DependencyType | None = None
    principal: str | None = None


class RemovedDependencies(Contract):
    """The number of dependencies that were removed."""

    removed: int = Field(ge=0)


class ListDependencies(Query):
    """List the dependencies of a capability, by id or name: `out`, those on others; `in`, those of
    others on it. Those of a record are those of its latest version."""

    reference: str
    direction: Direction = "both"
    limit: int = Field(default=100, ge=1, le=500)
    offset: int = Field(default=0, ge=0)
    cursor: PlaceCursor | None = None
    principal: str | None = None


class DependencyPage(Contract):
    """One page of dependencies, the most confident first, and the total number; with `next_cursor`
    there are more."""

    capability_id: UUID
    dependencies: tuple[Dependency, ...]
    total: int = Field(ge=0)
    next_cursor: PlaceCursor | None = None


class GraphNode(Contract):
    """A tool (`server:tool`) or a listed capability (by its id). `pagerank` sums up to 1 over the
    whole graph; `community` numbers the communities from 0, the largest first."""

    id: str
    kind: Literal["tool", "capability"]
    name: str
    description: str = ""
    pagerank: float = Field(ge=0, le=1)
    community: int = Field(ge=0)


class GraphEdge(Contract):
    """A relation between two nodes. `weight` in (0, 1] is that of its type times that of its
    source. Provides edges have the provider's output schema, the consumer's input schema, and the
    coverage and mapping of its fields."""

    from_: str = Field(validation_alias=AliasChoices("from", "from_"), serialization_alias="from")
    to: str
    type: EdgeType
    source: EdgeSource
    weight: float = Field(gt=0, le=1)
    observed_count: int = Field(default=0, ge=0)
    confidence_score: float | None = None
    coverage: Coverage | None = None
    field_mapping: tuple[FieldMapping, ...] = ()
    provider_output_schema: JsonObject | None = None
    consumer_input_schema: JsonObject | None = None


class Hyperedge(Contract):
    """A capability as an edge between all tools that it uses."""

    capability_id: str
    tools: tuple[str, ...]


class ShowHypergraph(Query):
    """Show the graph of the scope: at most `limit` nodes, those of highest PageRank first, and of
    the edges between them at most `edge_limit`, the heaviest first."""

    limit: int = Field(default=500, ge=1, le=2000)
    edge_limit: int = Field(default=500, ge=0, le=5000)
    principal: str | None = None


class Hypergraph(Contract):
    """Tools and capabilities with their relations. `total_nodes` and `total_edges` are those of the
    whole graph; `complete` is false where the scope has more than the graph holds."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    hyperedges: tuple[Hyperedge, ...]
    total_nodes: int = Field(ge=0)
    total_edges: int = Field(ge=0)
    communities: int = Field(ge=0)
    complete: bool


class FindPath(Query):
    """Find the shortest path between two nodes: ids of tools, ids or names of capabilities. An edge
    is the longer the less it weighs."""

    start: str
    end: str
    principal: str | None = None


class GraphPath(Contract):
    """A path: its nodes in order and the edge between each two, the heaviest. `length` is the sum
    of 1 / weight."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    length: float = Field(ge=0)
