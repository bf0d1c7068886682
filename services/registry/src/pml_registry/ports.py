"""Ports of the registry's handlers.

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
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage, DiscoveryHit, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_registry.domain.admission import Admission
from pml_registry.domain.listing import Listing, StoredCapability
from pml_registry.domain.ranking import Candidate, Kind, Ranked
from pml_registry.domain.tool_catalog import CatalogUpdate, KnownServer, ShownEdge

Vector = Sequence[float]
"""A unit vector of the model's dimension."""


@dataclass(frozen=True)
class Embedded:
    """Vectors of texts, in order, and the model that computed them."""

    model: str
    vectors: Sequence[Vector]


class Embedder(Protocol):
    """Maps texts to vectors; similar meanings have a high cosine."""

    async def model(self) -> str:
        """Return the model's name. Waits until it is loaded; raises the error of its loading."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Return a unit vector per text. Waits for the model; raises the error of its loading."""
        ...


class InboxTransaction(Protocol):
    """The transaction that handles one message: its changes are applied once or not at all."""

    @property
    def replayed(self) -> Sequence[Message] | None:
        """The messages published earlier, if this message was handled before."""
        ...

    def conclude(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Store the messages to publish, so that a redelivery publishes the same."""
        ...


class CapabilityTransaction(InboxTransaction, Protocol):
    """The transaction of one message about a capability."""

    async def capability(self, scope: Scope, capability_id: UUID) -> StoredCapability | None:
        """Read and lock a capability, existing or not, until the transaction ends."""
        ...

    async def taken(self, scope: Scope, names: Sequence[str]) -> Sequence[str]:
        """Return those of `names` that are names or aliases; locks naming in the scope until the
        transaction ends."""
        ...

    async def admit(
        self, analysis: ExecutionAnalyzed, admission: Admission, embedded: Embedded
    ) -> None:
        """Create a capability, or update an existing one's name and description; the old name stays
        as an alias. `embedded` is the single vector of the admission's document."""
        ...


@dataclass(frozen=True)
class CapabilityLookup:
    """The stored state of a message and its capability: the messages published if it was handled
    before, and the capability if it exists."""

    replayed: Sequence[Message] | None
    capability: StoredCapability | None


LearningOutcome = tuple[Listing, Sequence[Message]] | None
"""A capability's new listing and the messages to publish; None if the update is outdated."""


class CapabilityStore(Protocol):
    """Capabilities, their names and their statistics."""

    def once(
        self, message_id: UUID, consumer: str
    ) -> AbstractAsyncContextManager[CapabilityTransaction]:
        """Handle a message exactly once under redelivery; an error in the block rolls back."""
        ...

    async def look_up(
        self, analyses: Sequence[ExecutionAnalyzed], consumer: str
    ) -> Sequence[CapabilityLookup]:
        """Read the state of each analysis and its capability, without locks or changes."""
        ...

    async def apply_learning(
        self,
        updates: Sequence[LearningUpdated],
        consumer: str,
        learn: Callable[[LearningUpdated, StoredCapability], LearningOutcome],
    ) -> Mapping[UUID, Sequence[Message] | None]:
        """Store the newest statistics of each capability exactly once under redelivery and return
        the messages to publish after each update, by its id: None if the capability does not exist,
        nothing after one that a newer one includes. `learn` is called again after a concurrent
        change."""
        ...

    async def resolve(self, scope: Scope, reference: UUID | str) -> CapabilityRecord | None:
        """Return the capability with this id, name or former name."""
        ...

    async def set_cache(self, scope: Scope, capability_id: UUID, cache: CacheSettings) -> None:
        """Store the settings of an existing capability under the next revision; equal settings
        change nothing."""
        ...

    async def describe(
        self, scope: Scope, references: Sequence[str]
    ) -> Mapping[str, CapabilityDescription]:
        """Resolve references in programs: an id, a name or former name, a callable name (of the
        capability named first), or a callable name with the last digits of the id."""
        ...

    async def names(self, scope: Scope) -> Sequence[str]:
        """Return names in the scope, most used first, a few hundred at most."""
        ...

    async def page(self, query: ListCapabilities) -> CapabilityPage:
        """Return a page of capabilities, most used first."""
        ...


class ToolTransaction(InboxTransaction, Protocol):
    """The transaction of one message about tools."""

    async def server(self, scope: Scope, server: str) -> KnownServer:
        """Read and lock a server's tools until the transaction ends."""
        ...

    async def replace(
        self,
        listed: ToolsListed,
        change: CatalogUpdate,
        vectors: Mapping[str, Vector],
        model: str,
    ) -> None:
        """Store and remove tools; `vectors` has one for each stored tool, by id."""
        ...


class ToolStore(Protocol):
    """The tool catalog and the tool graph."""

    def once(self, message_id: UUID, consumer: str) -> AbstractAsyncContextManager[ToolTransaction]:
        """Handle a message exactly once under redelivery; an error in the block rolls back."""
        ...

    async def count_edges(
        self, shown: Sequence[ShownEdge], consumer: str, observed_from: int
    ) -> None:
        """Add to edge counts, once for each message under redelivery; an edge counted
        `observed_from` times is observed."""
        ...

    async def server(self, scope: Scope, server: str) -> KnownServer:
        """Return a server's tools."""
        ...

    async def tools(self, scope: Scope, server: str | None) -> Sequence[ToolDefinition]:
        """Return the definitions of the scope, or of one of its servers, ordered by id."""
        ...


class VectorIndex(Protocol):
    """Search by meaning. Derived: it may lag behind the stores and return removed ids."""

    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[str]:
        """Return the ids of the nearest by cosine, among vectors of the same model."""
        ...


class CodeHashing(Protocol):
    """Computes hashes of programs."""

    async def hash_of(self, code: str) -> str | None:
        """Return the hash of the program's normal form; None for a text that is no program."""
        ...


class CandidateStore(Protocol):
    """Reads candidates and hits that the scope may see."""

    async def candidates(
        self,
        scope: Scope,
        kind: Kind,
        intent: str,
        embedded: Embedded,
        near: Sequence[str],
        limit: int,
    ) -> Sequence[Candidate]:
        """Return those of `near`, and of the `limit` that share most words with the intent, that
        exist, belong to the scope and are listed. `embedded` is the intent's single vector."""
        ...

    async def hits(self, scope: Scope, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        """Return the ranked hits in order, without those removed meanwhile."""
        ...
