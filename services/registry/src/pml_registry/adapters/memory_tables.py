"""Tables shared by the registry's in-memory stores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from pml_common.contracts.caching import CachePolicy
from pml_common.contracts.capability import CapabilityRecord, Visibility
from pml_common.contracts.dependencies import DependencyType
from pml_common.contracts.dns import RecordChange
from pml_common.contracts.provides import ProvidesEdge
from pml_common.contracts.references import Tag
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition
from pml_common.storage.columns import scope_columns
from pml_common.storage.memory import MemoryInbox
from pml_registry.domain.edge_counts import EdgeKey, ShownBy
from pml_registry.domain.health import last_good, reference_to
from pml_registry.domain.listing import StoredCapability
from pml_registry.domain.names import fqdn_of
from pml_registry.domain.reservations import Reservation
from pml_registry.domain.signatures import Signature, VersionStatement
from pml_registry.domain.tool_catalog import LearnedOutput
from pml_registry.domain.versions import Version
from pml_registry.ports import CodeShape, VersionSigning
from pml_registry.ports.vectors import Embedded, PointKey, Vector


@dataclass(frozen=True)
class VersionRow:
    """A version of a record; its number is its place in it."""

    behaviour: UUID
    created_by: str
    created_at: datetime
    tag: Tag | None = None
    change_summary: str = ""
    yanked_reason: str | None = None
    signature: Signature | None = None
    signed_at: datetime | None = None


@dataclass(frozen=True)
class RecordRow:
    """A record with all its names, the present one last, and its versions, from the first."""

    record_id: UUID
    names: tuple[str, ...]
    owner: str
    versions: tuple[VersionRow, ...]
    latest: int = 1
    visibility: Visibility = "project"
    tags: tuple[str, ...] = ()
    forked_from: str | None = None
    cache: CachePolicy = field(default_factory=CachePolicy)

    @property
    def name(self) -> str:
        """The present name."""
        return self.names[-1]

    @property
    def named(self) -> bool:
        """Whether the present name was given."""
        return ":" in self.name

    @property
    def behaviours(self) -> Sequence[UUID]:
        """Those of the versions."""
        return [version.behaviour for version in self.versions]


@dataclass(frozen=True)
class BehaviourRow:
    """A behaviour: `record` without what belongs to a record's row."""

    record: CapabilityRecord
    terms: Mapping[str, float]
    learning_revision: int = 0
    shape: CodeShape | None = None


@dataclass(frozen=True)
class ChangeRow:
    """A change in a record's history, whose place in it is its sequence."""

    change: RecordChange
    principal: str
    at: datetime
    version: int
    behaviour: UUID
    tag: Tag | None = None
    details: JsonObject = field(default_factory=JsonObject)
    request_id: UUID | None = None


@dataclass(frozen=True)
class EdgeRow:
    """An edge, and its confidence when it was looked at last."""

    shown: ShownBy
    confidence: float
    created_at: datetime
    looked_at: datetime

    @classmethod
    def stated(cls, base: Literal["template", "inferred"], confidence: float) -> "EdgeRow":
        """Build the row of an edge that no run has shown."""
        now = datetime.now(UTC)
        shown = ShownBy(base, last_shown=now, base=base, base_confidence=confidence)
        return cls(shown, confidence, now, now)

    def kept(self, confidence: float) -> "EdgeRow":
        """Return it as one that stays without runs, with at least this confidence."""
        if self.shown.base is not None:
            return self
        shown = replace(self.shown, base="inferred", base_confidence=confidence)
        return replace(self, shown=shown)


@dataclass
class MemoryTables:
    """Rows by scope and id."""

    inbox: MemoryInbox = field(default_factory=MemoryInbox)
    behaviours: dict[tuple[Scope, UUID], BehaviourRow] = field(
        default_factory=dict[tuple[Scope, UUID], BehaviourRow]
    )
    records: dict[tuple[Scope, UUID], RecordRow] = field(
        default_factory=dict[tuple[Scope, UUID], RecordRow]
    )
    names: dict[tuple[Scope, str], UUID] = field(default_factory=dict[tuple[Scope, str], UUID])
    """Records by present and former names, in the order they were given."""
    reservations: dict[tuple[Scope, UUID], Reservation] = field(
        default_factory=dict[tuple[Scope, UUID], Reservation]
    )
    changes: dict[tuple[Scope, UUID], tuple[ChangeRow, ...]] = field(
        default_factory=dict[tuple[Scope, UUID], tuple[ChangeRow, ...]]
    )
    """Histories of records."""
    unpublished: dict[tuple[Scope, UUID], UUID] = field(
        default_factory=dict[tuple[Scope, UUID], UUID]
    )
    """Records by the scope and id of the request that changed them."""
    offered: dict[tuple[Scope, str], UUID] = field(default_factory=dict[tuple[Scope, str], UUID])
    """The behaviour that is offered, by its shape."""
    listed_at: dict[tuple[Scope, str], datetime | None] = field(
        default_factory=dict[tuple[Scope, str], datetime | None]
    )
    tools: dict[tuple[Scope, str], tuple[ToolDefinition, Mapping[str, float]]] = field(
        default_factory=dict[tuple[Scope, str], tuple[ToolDefinition, Mapping[str, float]]]
    )
    """With their weighed terms."""
    vectors: dict[PointKey, dict[str, Vector]] = field(
        default_factory=dict[PointKey, dict[str, Vector]]
    )
    """By model."""
    quarantined: dict[tuple[Scope, str], tuple[QuarantinedTool, ...]] = field(
        default_factory=dict[tuple[Scope, str], tuple[QuarantinedTool, ...]]
    )
    """By server."""
    outputs: dict[tuple[Scope, str], LearnedOutput] = field(
        default_factory=dict[tuple[Scope, str], LearnedOutput]
    )
    edges: dict[EdgeKey, EdgeRow] = field(default_factory=dict[EdgeKey, EdgeRow])
    """Edges between two tools, or between a tool and a capability."""
    provides: dict[tuple[Scope, str, str], ProvidesEdge] = field(
        default_factory=dict[tuple[Scope, str, str], ProvidesEdge]
    )
    provides_hashes: dict[tuple[Scope, str], str] = field(
        default_factory=dict[tuple[Scope, str], str]
    )
    """The definition that each tool's provides edges were computed from."""
    dependencies: dict[tuple[Scope, UUID, UUID, DependencyType], EdgeRow] = field(
        default_factory=dict[tuple[Scope, UUID, UUID, DependencyType], EdgeRow]
    )

    def store(self, key: tuple[Scope, UUID], row: BehaviourRow) -> None:
        """Store a behaviour; one that is listed offers its shape, unless another does."""
        self.behaviours[key] = row
        if row.record.listed and row.shape is not None:
            self.offered.setdefault((key[0], row.shape.shape_hash), key[1])

    def embed_behaviour(self, scope: Scope, behaviour: UUID, embedded: Embedded) -> None:
        """Store the vector of a behaviour's new text, if it is embedded, instead of those of the
        former one."""
        models = [embedded.model] * len(embedded.vectors)
        vectors = dict(zip(models, embedded.vectors, strict=True))
        self.vectors[behaviour_key(scope, behaviour)] = vectors

    def copy_vectors(self, source: tuple[Scope, UUID], behaviour: tuple[Scope, UUID]) -> None:
        """Give a behaviour the vectors of another with the same text."""
        copied = dict(self.vectors.get(behaviour_key(*source), {}))
        self.vectors[behaviour_key(*behaviour)] = copied

    def versions(self, scope: Scope) -> Iterator[CapabilityRecord]:
        """Every version of every record of a scope: named records first, the oldest name first,
        then the newest version."""
        given = list(self.names)
        rows = [row for (its_scope, _), row in self.records.items() if its_scope == scope]
        rows.sort(key=lambda row: (not row.named, given.index((scope, row.name))))
        for row in rows:
            for number in range(len(row.versions), 0, -1):
                yield self.version(scope, row, number)

    def latest(self, scope: Scope) -> Iterator[CapabilityRecord]:
        """Every record of a scope with its latest version."""
        for (its_scope, _), row in self.records.items():
            if its_scope == scope:
                yield self.version(scope, row, row.latest)

    async def signature(
        self, signing: VersionSigning, scope: Scope, record_id: UUID, number: int, behaviour: UUID
    ) -> Signature:
        """Sign a version of an existing behaviour: every insertion of one does."""
        code = self.behaviours[scope, behaviour].record
        statement = VersionStatement(scope, record_id, number, behaviour, code.code_hash, code.code)
        return await signing.sign(statement)

    def stored(self, scope: Scope, behaviour: UUID) -> StoredCapability | None:
        """A behaviour's mutable part, under the name of the record that stands for it."""
        record = next(
            (each for each in self.versions(scope) if each.capability_id == behaviour), None
        )
        if record is None:
            return None
        row = self.behaviours[scope, behaviour]
        offered = row.shape and self.offered.get((scope, row.shape.shape_hash))
        return StoredCapability(
            name=record.name,
            named=record.named,
            listed=record.listed,
            description=record.description,
            tools_used=record.tools_used,
            learning_revision=row.learning_revision,
            makes_calls=row.shape is None or row.shape.makes_calls,
            is_variant=offered not in (None, behaviour),
            health=record.health,
        )

    def note(
        self,
        scope: Scope,
        record_id: UUID,
        change: RecordChange,
        principal: str,
        version: int,
        details: JsonObject,
        request_id: UUID | None = None,
    ) -> None:
        """Add to a record's history."""
        of_version = self.records[scope, record_id].versions[version - 1]
        row = ChangeRow(
            change,
            principal,
            datetime.now(UTC),
            version,
            of_version.behaviour,
            of_version.tag,
            details,
            request_id,
        )
        self.changes[scope, record_id] = (*self.changes.get((scope, record_id), ()), row)

    def numbered(self, scope: Scope, row: RecordRow) -> Sequence[Version]:
        """The versions of a record, from the first."""
        return [
            Version(
                number,
                each.created_at,
                each.tag,
                each.yanked_reason,
                self.behaviours[scope, each.behaviour].record.health,
            )
            for number, each in enumerate(row.versions, 1)
        ]

    def version(self, scope: Scope, row: RecordRow, number: int) -> CapabilityRecord:
        """A record at one of its versions."""
        version = row.versions[number - 1]
        own = self.behaviours[scope, version.behaviour].record
        failing = own.health == "failing"
        good = last_good(self.numbered(scope, row), number) if failing else None
        return own.model_copy(
            update={
                "record_id": row.record_id,
                "fqdn": fqdn_of(scope, row.name, row.record_id),
                "name": row.name,
                "aliases": tuple(sorted(row.names[:-1])),
                "named": row.named,
                "version": number,
                "version_tag": None if version.tag is None else str(version.tag),
                "yanked_reason": version.yanked_reason,
                "signature": None if version.signature is None else version.signature.value,
                "key_id": None if version.signature is None else version.signature.key_id,
                "owner": row.owner,
                "visibility": row.visibility,
                "tags": row.tags,
                "forked_from": row.forked_from,
                "cache": row.cache,
                "last_good": reference_to(row.name, good),
            }
        )


def behaviour_key(scope: Scope, behaviour: UUID) -> PointKey:
    """Return the key of a behaviour's vectors."""
    return PointKey(*scope_columns(scope), "capability", str(behaviour))


def tool_key(scope: Scope, tool_id: str) -> PointKey:
    """Return the key of a tool's vectors."""
    return PointKey(*scope_columns(scope), "tool", tool_id)
