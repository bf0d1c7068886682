"""Tables shared by the registry's in-memory stores."""

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
class SearchEntry:
    """The search document of a tool or capability, and its vector."""

    document: str
    model: str
    vector: Vector


@dataclass(frozen=True)
class CapabilityRow:
    """A row of the capability table."""

    record: CapabilityRecord
    learning_revision: int = 0

    @property
    def stored(self) -> StoredCapability:
        """The mutable part of the row."""
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
    capabilities: dict[tuple[Scope, UUID], tuple[CapabilityRow, SearchEntry]] = field(
        default_factory=dict[tuple[Scope, UUID], tuple[CapabilityRow, SearchEntry]]
    )
    names: dict[tuple[Scope, str], UUID] = field(default_factory=dict[tuple[Scope, str], UUID])
    """Current and former names, in the order they were given."""
    listed_at: dict[tuple[Scope, str], datetime | None] = field(
        default_factory=dict[tuple[Scope, str], datetime | None]
    )
    tools: dict[tuple[Scope, str], tuple[ToolDefinition, SearchEntry]] = field(
        default_factory=dict[tuple[Scope, str], tuple[ToolDefinition, SearchEntry]]
    )
    edges: dict[tuple[Scope, str, str, str], tuple[int, str]] = field(
        default_factory=dict[tuple[Scope, str, str, str], tuple[int, str]]
    )
    """Count and source by tools and type."""
