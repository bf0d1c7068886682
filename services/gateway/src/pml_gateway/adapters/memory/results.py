"""Results kept for good, in memory; the twin of those in Postgres, under the same suite."""

from datetime import datetime
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_gateway.domain.workflow.result_cache import Kept, ResultKey


class MemoryResults:
    """See `ports.LastingResults`."""

    def __init__(self) -> None:
        self.kept: dict[ResultKey, Kept] = {}

    async def find(self, key: ResultKey) -> Kept | None:
        """See `ports.KeptResults`."""
        return self.kept.get(key)

    async def keep(self, key: ResultKey, kept: Kept) -> None:
        """See `ports.KeptResults`."""
        self.kept[key] = kept

    async def drop(self, scope: Scope, capability_id: UUID, but_revision: int) -> None:
        """See `ports.LastingResults`."""
        for key in list(self.kept):
            of_it = (key.scope, key.capability_id) == (scope, capability_id)
            if of_it and key.revision != but_revision:
                del self.kept[key]

    async def forget(self, now: datetime) -> None:
        """See `ports.LastingResults`."""
        self.kept = {key: kept for key, kept in self.kept.items() if kept.holds(now)}
