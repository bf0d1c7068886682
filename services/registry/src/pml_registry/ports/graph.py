"""Ports of the handlers that relate capabilities and tools.

Everything that reaches a store may raise StorageUnavailable.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

from pml_common.contracts.dependencies import (
    Dependency,
    DependencyPage,
    DependencyType,
    ListDependencies,
)
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Coverage
from pml_common.contracts.tool import ToolDefinition
from pml_registry.domain.dependencies import NewDependency, Peer, Related
from pml_registry.domain.edge_counts import EdgeKey, ShownEdge
from pml_registry.domain.graph import GraphRows
from pml_registry.domain.provides import Ends, ProvidesChange
from pml_registry.domain.visibility import Viewer


@dataclass(frozen=True)
class Added:
    """A dependency, whether it is new, and the cycle that it closes, if any."""

    dependency: Dependency
    created: bool
    cycle: Sequence[UUID]


@dataclass(frozen=True)
class Counted:
    """The messages whose edges of capabilities were not counted, as one does not exist; the edges
    that are new, and those that have another source than before; the messages counted earlier."""

    missing: Collection[UUID]
    made: Sequence[EdgeKey]
    turned: Sequence[EdgeKey] = ()
    again: Collection[UUID] = ()


LOOK_AGAIN_AFTER: Final = timedelta(days=1)
"""Time after which an edge is looked at again for how far it has faded."""


class EdgeStore(Protocol):
    """The runs that showed edges."""

    async def count(self, shown: Sequence[ShownEdge], consumer: str, at: datetime) -> Counted:
        """Count the runs that showed edges at a time, once for each message under redelivery, and
        within their cohorts' bounds."""
        ...

    async def fade(self, at: datetime, limit: int) -> int:
        """Store how far edges of all scopes have faded, `limit` of each kind, those that were
        looked at first; return the most of a kind that were due. A repetition changes nothing."""
        ...


class DependencyStore(Protocol):
    """Dependencies between behaviours."""

    async def add(self, scope: Scope, new: NewDependency) -> Added:
        """Add a dependency between existing behaviours, unless there is one of its type: that stays
        as it is. No other is added to the scope meanwhile. Raises CyclicTemplate."""
        ...

    async def remove(
        self, scope: Scope, from_: UUID, to: UUID, type_: DependencyType | None
    ) -> int:
        """Remove the dependencies of one on another, or the one of a type; return their number."""
        ...

    async def page(self, asked: ListDependencies, behaviour: UUID) -> DependencyPage:
        """Return the page that is asked for of a behaviour's dependencies, without those whose
        other end is private to others. Raises BadCursor."""
        ...

    async def counts(self, viewer: Viewer, behaviours: Sequence[UUID]) -> Mapping[UUID, int]:
        """Return the number of each one's dependencies in the viewer's scope, in both directions,
        without those whose other end is private to others."""
        ...

    async def needs(
        self, scope: Scope, behaviours: Sequence[UUID], limit: int
    ) -> Mapping[UUID, Sequence[Dependency]]:
        """Return what each one calls (`contains`) and needs (`dependency`), the most confident
        first, `limit` each; without what is private to anybody."""
        ...

    async def cycle(self, scope: Scope, caller: UUID, called: UUID) -> Sequence[UUID]:
        """Return the cycle that a stored `contains` or `dependency` relation closes, if any."""
        ...

    async def peer(self, scope: Scope, behaviour: UUID) -> Peer | None:
        """Return a behaviour, listed or not."""
        ...

    async def peers(self, scope: Scope, behaviours: Sequence[UUID]) -> Sequence[Peer]:
        """Return those that are listed, as the latest version of a record, in the order of
        `behaviours`."""
        ...

    async def peers_by_tools(self, scope: Scope, behaviour: UUID, limit: int) -> Sequence[Peer]:
        """Return others that share a tool with a behaviour, listed as the latest version of a
        record; any `limit` of them."""
        ...

    async def relate(self, scope: Scope, behaviour: UUID, related: Sequence[Related]) -> int:
        """Store inferred relations to existing others, without those of whose type there is one
        already, in either direction; return the number of new ones."""
        ...


Compare = Callable[
    [Sequence[ToolDefinition], Sequence[str], Mapping[Ends, Coverage]], ProvidesChange
]
"""`provides_change` of the domain."""


class GraphStore(Protocol):
    """The rows of graphs, and the provides edges in them."""

    async def rows(self, scope: Scope, most_nodes: int, most_edges: int) -> GraphRows:
        """Return the scope's tools and listed capabilities, `most_nodes` of each kind, and the
        relations between them, `most_edges` of each kind."""
        ...

    async def refresh_provides(self, scope: Scope, compare: Compare) -> ProvidesChange | None:
        """Compare tools whose edges are not those of their definition, and store the change; no
        other is stored in the scope meanwhile. None: nothing is left to compare. `compare` runs in
        a thread."""
        ...

    async def stale_scopes(self, limit: int) -> Sequence[Scope]:
        """Return scopes that have such tools."""
        ...
