"""Cached results in memory; passes the same contract suite as the store in Postgres."""

from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_gateway.domain.workflow.result_cache import CachedResult, ResultKey
from pml_gateway.ports import LastingResults


class MemoryResults(LastingResults):
    def __init__(self) -> None:
        self.kept: dict[ResultKey, CachedResult] = {}

    @override
    async def find(self, key: ResultKey) -> CachedResult | None:
        return self.kept.get(key)

    @override
    async def keep(self, key: ResultKey, kept: CachedResult) -> None:
        self.kept[key] = kept

    @override
    async def drop(self, scope: Scope, capability_id: UUID, but_revision: int) -> None:
        for key in list(self.kept):
            of_it = (key.scope, key.capability_id) == (scope, capability_id)
            if of_it and key.revision != but_revision:
                del self.kept[key]

    def erase(self, scope: Scope, workflow_id: UUID) -> None:
        """Delete the results of a workflow."""
        for key, kept in list(self.kept.items()):
            if (key.scope, kept.workflow_id) == (scope, workflow_id):
                del self.kept[key]

    @override
    async def forget(self, now: datetime) -> None:
        self.kept = {key: kept for key, kept in self.kept.items() if kept.is_valid(now)}
