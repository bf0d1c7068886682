"""What the registry's handlers need of the world.

Everything that reaches a store may raise StorageUnavailable.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.learner import LearningUpdated, ObservedEdge
from pml_common.contracts.registry import CapabilityPage, DiscoveryHit, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_registry.domain.admission import Admission
from pml_registry.domain.catalogue import CatalogueChange, KnownServer
from pml_registry.domain.listing import Listing, StoredCapability
from pml_registry.domain.ranking import Candidate, Kind, Ranked

Vector = Sequence[float]
"""A unit vector of the model's dimension."""


@dataclass(frozen=True)
class Embedded:
    """Vectors of some texts, in their order, and the model that made them."""

    model: str
    vectors: Sequence[Vector]


class Embedder(Protocol):
    """Turns texts into vectors; texts of like meaning lie close by cosine."""

    async def model(self) -> str:
        """The model's name. Waits until it is loaded; raises what its loading raised."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """A unit vector per text. Waits until the model is loaded; raises what that raised."""
        ...


class Handling(Protocol):
    """One handling of one message: what is saved in it counts once, or not at all."""

    @property
    def replayed(self) -> Sequence[Message] | None:
        """The facts stated before, when this message was handled before."""
        ...

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """Remember what is stated, so that a redelivery states the same."""
        ...


class CapabilityHandling(Handling, Protocol):
    """One handling of one message about a capability."""

    async def capability(self, scope: Scope, capability_id: UUID) -> StoredCapability | None:
        """A capability; nobody else changes or makes it until this handling ends."""
        ...

    async def taken(self, scope: Scope, names: Sequence[str]) -> Sequence[str]:
        """Those of `names` that are names or aliases already; nobody else gives names in this
        scope until this handling ends."""
        ...

    async def admit(
        self, analysis: ExecutionAnalyzed, admission: Admission, embedded: Embedded
    ) -> None:
        """Create a capability, or give a known one its new name and description; an old name
        stays as an alias. `embedded` is the one vector of the admission's document."""
        ...


@dataclass(frozen=True)
class Seen:
    """What is stored about a message and the capability it speaks of: the facts stated when it
    was handled before, and the capability, where there are such."""

    replayed: Sequence[Message] | None
    held: StoredCapability | None


Taught = tuple[Listing, Sequence[Message]] | None
"""How a capability stands after a lesson and what to state; None: there is nothing to learn."""


class CapabilityStore(Protocol):
    """Capabilities, their names and their statistics."""

    def once(
        self, message_id: UUID, consumer: str
    ) -> AbstractAsyncContextManager[CapabilityHandling]:
        """Handle a message once, whatever is redelivered; an error in the block undoes it."""
        ...

    async def seen(
        self, message_id: UUID, consumer: str, scope: Scope, capability_id: UUID
    ) -> Seen:
        """A look that holds nothing and leaves nothing."""
        ...

    async def learn_once(
        self, updated: LearningUpdated, consumer: str, teach: Callable[[StoredCapability], Taught]
    ) -> Sequence[Message] | None:
        """Keep statistics once, whatever is redelivered, and return what is stated; `teach` may be
        asked again where another was faster. None: there is no such capability."""
        ...

    async def resolve(self, scope: Scope, reference: UUID | str) -> CapabilityRecord | None:
        """The capability with this id, name or former name."""
        ...

    async def set_cache(self, scope: Scope, capability_id: UUID, cache: CacheSettings) -> None:
        """Keep what was chosen for a capability that is there, under the next revision; what is
        chosen already changes nothing."""
        ...

    async def describe(
        self, scope: Scope, references: Sequence[str]
    ) -> Mapping[str, CapabilityDescription]:
        """The capabilities that programs name so: by id, by name or former name, by callable name
        (the one named first has it), or by that with the last digits of the id."""
        ...

    async def names(self, scope: Scope) -> Sequence[str]:
        """Names in the scope, the most used first, some hundred at most."""
        ...

    async def page(self, query: ListCapabilities) -> CapabilityPage:
        """Capabilities, the most used first."""
        ...


class ToolHandling(Handling, Protocol):
    """One handling of one message about tools."""

    async def server(self, scope: Scope, server: str) -> KnownServer:
        """A server's tools; nobody else changes them until this handling ends."""
        ...

    async def replace(
        self,
        listed: ToolsListed,
        change: CatalogueChange,
        vectors: Mapping[str, Vector],
        model: str,
    ) -> None:
        """Save and remove tools; `vectors` has one for each saved tool, by id."""
        ...

    async def count_edges(
        self, scope: Scope, edges: Sequence[ObservedEdge], observed_from: int
    ) -> None:
        """Add to the counts of edges; from `observed_from` on an edge is observed."""
        ...


class ToolStore(Protocol):
    """The tool catalogue and the tool graph."""

    def once(self, message_id: UUID, consumer: str) -> AbstractAsyncContextManager[ToolHandling]:
        """Handle a message once, whatever is redelivered; an error in the block undoes it."""
        ...

    async def server(self, scope: Scope, server: str) -> KnownServer:
        """A server's tools."""
        ...

    async def tools(self, scope: Scope, server: str | None) -> Sequence[ToolDefinition]:
        """Definitions of the scope, or of one server in it, by id order."""
        ...


class VectorIndex(Protocol):
    """Finds by meaning. Derived: it may lag behind the stores and what it names may be gone."""

    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[str]:
        """Ids of the nearest by cosine, among vectors of the same model."""
        ...


class CodeHashing(Protocol):
    """Tells which program a text is."""

    async def hash_of(self, code: str) -> str | None:
        """The hash of its normal form; None for what is no program."""
        ...


class Evidence(Protocol):
    """The truth about what may be shown, and how well it fits."""

    async def weigh(
        self,
        scope: Scope,
        kind: Kind,
        intent: str,
        embedded: Embedded,
        near: Sequence[str],
        limit: int,
    ) -> Sequence[Candidate]:
        """Of `near` and of the `limit` that share most words with the intent, those that exist,
        belong to the scope and are listed. `embedded` is the one vector of the intent."""
        ...

    async def hits(self, scope: Scope, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        """The ranked ones in full, in their order, without those gone meanwhile."""
        ...
