"""What the in-memory stores of the registry share."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.storage.memory import MemoryInbox
from pml_registry.domain.listing import StoredCapability
from pml_registry.ports import Vector


@dataclass(frozen=True)
class Found:
    """What a thing is found by."""

    document: str
    model: str
    vector: Vector


@dataclass(frozen=True)
class Kept:
    """A capability as stored."""

    record: CapabilityRecord
    learning_revision: int = 0

    @property
    def held(self) -> StoredCapability:
        """What may change of it."""
        record = self.record
        return StoredCapability(
            name=record.name,
            named=record.named,
            listed=record.listed,
            description=record.description,
            tools_used=record.tools_used,
            learning_revision=self.learning_revision,
        )


@dataclass
class MemoryTables:
    """Rows by scope and id."""

    inbox: MemoryInbox = field(default_factory=MemoryInbox)
    capabilities: dict[tuple[Scope, UUID], tuple[Kept, Found]] = field(
        default_factory=dict[tuple[Scope, UUID], tuple[Kept, Found]]
    )
    names: dict[tuple[Scope, str], UUID] = field(default_factory=dict[tuple[Scope, str], UUID])
    """Present and former names, in the order they were given."""
    listed_at: dict[tuple[Scope, str], datetime | None] = field(
        default_factory=dict[tuple[Scope, str], datetime | None]
    )
    tools: dict[tuple[Scope, str], tuple[ToolDefinition, Found]] = field(
        default_factory=dict[tuple[Scope, str], tuple[ToolDefinition, Found]]
    )
    edges: dict[tuple[Scope, str, str, str], tuple[int, str]] = field(
        default_factory=dict[tuple[Scope, str, str, str], tuple[int, str]]
    )
    """Count and source by ends and type."""
