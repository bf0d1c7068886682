"""The orders of lists of capabilities and of their dependencies."""

from typing import Final
from uuid import UUID

from pydantic import TypeAdapter

from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.cursors import Keyset, Name, Rank
from pml_common.contracts.dependencies import Dependency

MOST_USED: Final = Keyset[CapabilityRecord, tuple[int, str, UUID]](
    TypeAdapter(tuple[Rank, Name, UUID]),
    lambda record: (-record.usage.count, record.name, record.record_id),
)
MOST_CONFIDENT: Final = Keyset[Dependency, tuple[float, UUID, UUID, str]](
    TypeAdapter(tuple[float, UUID, UUID, Name]),
    lambda each: (
        -each.confidence_score,
        each.from_capability_id,
        each.to_capability_id,
        each.edge_type,
    ),
)
