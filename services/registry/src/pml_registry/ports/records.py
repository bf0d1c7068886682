"""Ports of the records: how people and other scopes name capabilities.

Everything that reaches a store may raise StorageUnavailable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from pml_common.contracts.display_names import DisplayName
from pml_common.contracts.dns import QueryRecords, RecordSummary, VersionSummary
from pml_common.contracts.references import Fqdn, ScopedName, Unnamed
from pml_common.contracts.registry import CapabilityChanged
from pml_common.contracts.scope import Scope
from pml_registry.domain.cursors import After
from pml_registry.domain.record_changes import (
    Effect,
    FoundAs,
    RecordState,
    Refused,
    StoredChange,
)
from pml_registry.domain.signatures import StoredVersion
from pml_registry.domain.visibility import Place, Viewer
from pml_registry.ports import FoundBy


@dataclass(frozen=True)
class Located:
    """The record that a reference means without its selector, at its latest version, or at the one
    whose behaviour's id the reference is."""

    scope: Scope
    record_id: UUID
    place: Place
    version: int


Target = DisplayName | ScopedName | Fqdn | Unnamed | UUID
"""The meaning of a reference, without its selector."""


@dataclass(frozen=True)
class ChangeRequest:
    """A request to change a record, `name`: the one that it is to have from now on; `found_by`:
    what the version concerned is found by after the change, made for `found_as`."""

    request_id: UUID
    viewer: Viewer
    name: str | None = None
    found_by: FoundBy | None = None
    found_as: FoundAs | None = None


@dataclass(frozen=True)
class ForkRequest:
    """A request to copy a version into a new record of the viewer's scope."""

    request_id: UUID
    viewer: Viewer
    name: DisplayName
    forked_from: str


@dataclass(frozen=True)
class MergeRequest:
    """A request to name the program of a merge; `merged_from`: the versions that it is made of, as
    references. `found_by`: what it is found by under that name."""

    request_id: UUID
    viewer: Viewer
    name: DisplayName
    behaviour: UUID
    merged_from: tuple[str, ...]
    found_by: FoundBy


@dataclass(frozen=True)
class Made:
    """The record that a request changed or made, with the message to publish; without it where the
    request was repeated. Not `changed`: it was so already."""

    record_id: UUID
    event: CapabilityChanged | None = None
    changed: bool = True


@dataclass(frozen=True)
class Outdated:
    """Nothing was changed: what the version is found by was made for what it is no more."""


class RecordStore(Protocol):
    """Records as people and other scopes name them, and their changes."""

    async def locate(self, viewer: Viewer, target: Target | str) -> Located | None:
        """Return the nearest record that the viewer sees under a name, present or former: of its
        project, then of its organisation, then of others. A text is a callable name."""
        ...

    async def versions_of(
        self, viewer: Viewer, scope: Scope, record_id: UUID
    ) -> Sequence[tuple[VersionSummary, StoredVersion]]:
        """Return the versions of a record that the viewer's scope sees in its own or in another,
        with their use, not verified yet, and what is signed of each, the newest first."""
        ...

    async def query(
        self, query: QueryRecords, after: After | None
    ) -> tuple[Sequence[tuple[After, RecordSummary]], int]:
        """Return at most `limit` + 1 of the records that match and that the principal sees, and how
        many there are in all."""
        ...

    async def history(
        self, viewer: Viewer, scope: Scope, record_id: UUID, before: int | None, limit: int
    ) -> Sequence[tuple[StoredChange, Sequence[str]]]:
        """Return the changes of such a record before this one, the newest first, each that made a
        version with the code of the one before it and its own."""
        ...

    async def made(self, scope: Scope, request_id: UUID) -> UUID | None:
        """Return the record of the scope that this request changed or made before."""
        ...

    async def change(
        self,
        scope: Scope,
        record_id: UUID,
        request: ChangeRequest,
        decide: Callable[[RecordState, str | None], Effect | Refused | None],
    ) -> Made | Refused | Outdated:
        """Change an existing record in one transaction. `decide` gets what stands, and who has the
        request's name, if another has. Outdated where others have changed meanwhile what the
        request's `found_by` was made for."""
        ...

    async def fork(self, source: Located, request: ForkRequest) -> Made | Refused:
        """Make a record with a version of another, in one transaction."""
        ...

    async def merge(self, request: MergeRequest) -> Made | Refused:
        """Give an existing behaviour that has no name yet its name, in one transaction."""
        ...

    async def merged_from(self, viewer: Viewer, scope: Scope, record_id: UUID) -> tuple[str, ...]:
        """Return the versions that a record was made of by a merge; none for others."""
        ...

    async def adopt(self, source: Located, viewer: Viewer, origin: str) -> UUID:
        """Store the behaviour of another scope's version in the viewer's, with a provisional
        record, unless it is there; return its id."""
        ...

    async def unpublished(self, limit: int) -> Sequence[tuple[UUID, CapabilityChanged]]:
        """Return messages about changes that were not published, the oldest first, each with the
        id of its request."""
        ...

    async def mark_published(self, requests: Sequence[tuple[Scope, UUID]]) -> None:
        """Remember that the messages about these requests were published."""
        ...
