"""Past runs in Postgres, to look at them again."""

from collections.abc import Mapping
from uuid import UUID

from pml_common.contracts.capability import Learning
from pml_common.storage.columns import columns, scope_columns, scope_of
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_learner.domain.lesson import ScopedCapability
from pml_learner.domain.replay import PastRun, RunKey
from pml_learner.ports import Past

_SQL = load_queries("pml_learner")

_BEFORE_ALL = ("", "", UUID(int=0))


class PostgresReplay:
    """Reads past runs, and refreshes their priorities."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    async def past(self, after: ScopedCapability | None, limit: int) -> Past | None:
        place = _BEFORE_ALL if after is None else (*scope_columns(after[0]), after[1])
        async with self._pools.across() as session:
            found = await session.fetchrow(_SQL["next-capability"], *place)
            if found is None:
                return None
            key = found["org"], found["project"], found["capability_id"]
            rows = await session.fetch(_SQL["list-past-runs"], *key, limit)
        runs = {
            (row["id"], row["executed_at"]): PastRun(
                tuple(row["executed_path"]), row["success"], row["duration_ms"], row["priority"]
            )
            for row in rows
        }
        learning = Learning.model_validate_json(found["learning"])
        return Past((scope_of(found), found["capability_id"]), learning, runs)

    async def refresh(
        self, capability: ScopedCapability, priorities: Mapping[RunKey, float]
    ) -> None:
        scope, _ = capability
        rows = [(*key, priority) for key, priority in sorted(priorities.items())]
        changed = *scope_columns(scope), *columns(rows, 3)
        await self._pools.change(scope, _SQL["refresh-priorities"], *changed)
