"""Ports of the registry's handlers.

Everything that reaches a store may raise StorageUnavailable.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord, Health, Usage
from pml_common.contracts.gateway import ToolsListed, WorkflowOutcome
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage, DiscoveryHit, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition
from pml_registry.domain.admission import Admission
from pml_registry.domain.intents import Part
from pml_registry.domain.listing import Listing, ScopedCapability, StoredCapability
from pml_registry.domain.offers import Subject
from pml_registry.domain.ranking import Candidate, Kind, Ranked
from pml_registry.domain.reservations import Refusal, Reservation, Reserve, Use, Wish
from pml_registry.domain.signatures import Signature, StoredVersion, VersionStatement
from pml_registry.domain.tool_catalog import CatalogUpdate, KnownServer, LearnedOutput
from pml_registry.domain.versions import Version
from pml_registry.domain.visibility import Viewer
from pml_registry.ports.vectors import Embedded, Near, Vector


@dataclass(frozen=True)
class CodeShape:
    """Equal hashes: the programs differ by literals alone. `makes_calls`: of tools or
    capabilities."""

    shape_hash: str
    makes_calls: bool


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
        self,
        analysis: ExecutionAnalyzed,
        admission: Admission,
        embedded: Embedded,
        shape: CodeShape | None,
    ) -> None:
        """Create a capability. `embedded` has the vector of the admission's document, or none."""
        ...


@dataclass(frozen=True)
class CapabilityLookup:
    """The stored state of a message and its capability: the messages published if it was handled
    before, and the capability if it exists."""

    replayed: Sequence[Message] | None
    capability: StoredCapability | None


@dataclass(frozen=True)
class Described:
    """A capability as programs refer to it, the version that it is, with its use and health, the
    version to call instead where it is failing, and why it must not run, if so."""

    description: CapabilityDescription
    version: StoredVersion
    usage: Usage
    health: Health = "unproven"
    last_good: str | None = None
    refused: str | None = None


LearningOutcome = tuple[Listing, Sequence[Message]] | None
"""A capability's new listing and the messages to publish; None if the update is outdated."""


class CapabilityStore(Protocol):
    """Capabilities, their names and their statistics."""

    def once(
        self, scope: Scope, message_id: UUID, consumer: str
    ) -> AbstractAsyncContextManager[CapabilityTransaction]:
        """Handle a message of a scope exactly once under redelivery; an error in the block rolls
        back."""
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

    async def undescribed(
        self, capabilities: Sequence[ScopedCapability]
    ) -> Mapping[ScopedCapability, "BehaviourTexts"]:
        """Return the texts of those that exist and of which nothing says what they are for."""
        ...

    async def describe_first(
        self, scope: Scope, capability_id: UUID, name: str, found_by: "FoundBy"
    ) -> None:
        """Describe such a capability; not if it has been described, or named otherwise, since."""
        ...

    async def versions(self, viewer: Viewer, scope: Scope, record_id: UUID) -> Sequence[Version]:
        """Return the versions of a record that the viewer's scope sees in its own or in another,
        from the first."""
        ...

    async def at(
        self, viewer: Viewer, scope: Scope, record_id: UUID, number: int
    ) -> CapabilityRecord:
        """Return such a record at one of its versions. Raises LookupError."""
        ...

    async def set_cache(self, scope: Scope, record_id: UUID, cache: CacheSettings) -> None:
        """Store the settings of an existing record under the next revision; equal settings
        change nothing."""
        ...

    async def describe(self, viewer: Viewer, references: Sequence[str]) -> Mapping[str, Described]:
        """Resolve references in programs to what the viewer sees of its own scope: an id, a name or
        former name, a callable name (of the capability named first), or a callable name with the
        last digits of the id."""
        ...

    async def names(self, viewer: Viewer) -> Sequence[str]:
        """Return names in the viewer's scope that it sees, most used first, a few hundred at
        most."""
        ...

    async def page(self, query: ListCapabilities) -> CapabilityPage:
        """Return a page of capabilities, most used first. Raises BadCursor."""
        ...


class VersionRefused(Exception):
    """A version is not what was signed, or cannot be signed; says which, why, and what to do."""


class VersionSigning(Protocol):
    """Signs versions with the registry's present key, and verifies signatures by its trusted
    ones."""

    @property
    def key_id(self) -> str:
        """The id of the present key."""
        ...

    async def sign(self, statement: VersionStatement) -> Signature:
        """Sign a version. Raises VersionRefused if its code is not what its hash and its id say."""
        ...

    def is_signed(self, statement: VersionStatement, signature: Signature) -> bool:
        """Return whether a trusted key signed exactly this."""
        ...


class SignatureStore(Protocol):
    """Signatures of versions in all scopes."""

    async def others(
        self, key_id: str, after: StoredVersion | None, limit: int
    ) -> Sequence[StoredVersion]:
        """Return versions that this key has not signed, in a fixed order, after one of them."""
        ...

    async def replace(self, version: StoredVersion, signature: Signature) -> None:
        """Store the signature, if version and signature are still those."""
        ...


@dataclass(frozen=True)
class BehaviourTexts:
    """Texts that a behaviour is found by; `name` is that of the record that stands for it."""

    name: str
    description: str
    tools_used: Sequence[str]
    parameters_schema: JsonObject


@dataclass(frozen=True)
class FoundBy:
    """A behaviour's document, its weighed terms, in `embedded` its vector, if any, and the
    description in all of them."""

    document: str
    terms: Mapping[str, float]
    embedded: Embedded
    description: str


class NameStore(Protocol):
    """Reservations of names, and the records that they become."""

    async def reserve(
        self, scope: Scope, wish: Wish, lapses_at: datetime
    ) -> Use | Reserve | Refusal:
        """Decide on a wish by what stands, and store the reservation; no other wish in the scope is
        decided meanwhile."""
        ...

    async def in_the_way(self, scope: Scope, name: str) -> Reservation | None:
        """Return the reservation of this name, or of one with the same callable name."""
        ...

    async def reservation(self, scope: Scope, workflow_id: UUID) -> Reservation | None:
        """Return a workflow's reservation."""
        ...

    async def texts(self, scope: Scope, behaviour: UUID) -> BehaviourTexts:
        """Return the texts of an existing behaviour."""
        ...

    async def latest_description(self, scope: Scope, record_id: UUID) -> str:
        """Return what the latest version of an existing record is for."""
        ...

    async def settle(self, scope: Scope, workflow_id: UUID, found_by: FoundBy) -> None:
        """Do what the reservation is for, once, and list the behaviour, which is found by this from
        now on; a version that gets the name is described so. Nothing where there is none."""
        ...

    async def renew(self, scope: Scope, workflow_id: UUID, lapses_at: datetime) -> None:
        """Keep a reservation until then."""
        ...

    async def release(self, scope: Scope, workflow_id: UUID) -> None:
        """Delete a reservation, if there is one."""
        ...

    async def lapsed(self, now: datetime, limit: int) -> Sequence[tuple[Scope, Reservation]]:
        """Return reservations to be looked at, the longest lapsed first."""
        ...


class WorkflowOutcomes(Protocol):
    """States of workflows."""

    async def outcome_of(self, scope: Scope, workflow_id: UUID) -> WorkflowOutcome:
        """Ask. Raises QueryFailed."""
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
        quarantined: Sequence[QuarantinedTool],
    ) -> None:
        """Store and remove tools, and store which are in quarantine; `vectors` has them by tool
        id; a tool without one is embedded later."""
        ...

    async def outputs(self, scope: Scope, tool_ids: Sequence[str]) -> Mapping[str, LearnedOutput]:
        """Return what was learned of the results of tools, by id."""
        ...

    async def save_outputs(self, scope: Scope, outputs: Mapping[str, LearnedOutput]) -> None:
        """Store what was learned, by tool id."""
        ...


class ToolStore(Protocol):
    """The tool catalog and the tool graph."""

    def once(
        self, scope: Scope, message_id: UUID, consumer: str
    ) -> AbstractAsyncContextManager[ToolTransaction]:
        """Handle a message of a scope exactly once under redelivery; an error in the block rolls
        back."""
        ...

    async def server(self, scope: Scope, server: str) -> KnownServer:
        """Return a server's tools."""
        ...

    async def tools(self, scope: Scope, server: str | None) -> Sequence[ToolDefinition]:
        """Return the definitions of the scope, or of one of its servers, with what was learned of
        their results, ordered by id."""
        ...

    async def quarantined(self, scope: Scope, server: str | None) -> Sequence[QuarantinedTool]:
        """Return the tools in quarantine of the scope, or of one of its servers, by server and
        name."""
        ...


class CodeHashing(Protocol):
    """Computes hashes of programs."""

    async def hash_of(self, code: str) -> str | None:
        """Return the hash of the program's normal form; None for a text that is no program."""
        ...

    async def shape_of(self, code: str) -> CodeShape | None:
        """Return the program's shape; None for a text that is no program."""
        ...


class CandidateStore(Protocol):
    """Reads candidates and hits that the scope may see."""

    async def candidates(
        self,
        viewer: Viewer,
        kind: Kind,
        parts: Sequence[Part],
        embedded: Embedded | None,
        near: Sequence[Near],
        supported: Sequence[str] = (),
    ) -> Sequence[Candidate]:
        """Return those of `near`, of `supported` (ids) and of the `limit` of each part that share
        most words with it, that exist, that the viewer sees in its scope and that are listed.
        `embedded` has a vector for each part; without it, every cosine is 0. Where there is one
        part, the cosines of `near` are with it."""
        ...

    async def subjects(
        self, scope: Scope, ranked: Sequence[Ranked]
    ) -> Mapping[tuple[Kind, str], Subject]:
        """Return what a policy judges each by, without those removed meanwhile."""
        ...

    async def hits(self, viewer: Viewer, ranked: Sequence[Ranked]) -> Sequence[DiscoveryHit]:
        """Return the ranked hits in order, without those removed meanwhile."""
        ...
