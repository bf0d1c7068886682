"""Results kept for a time, in the bus's own memory, for all replicas."""

import json
import math
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from pml_common.bus.port import KeyValueCache
from pml_gateway.domain.workflow.result_cache import Kept, ResultKey


class BusResults:
    """See `ports.KeptResults`; the bus forgets what is kept once its time is over."""

    def __init__(self, cache: KeyValueCache, now: Callable[[], datetime]) -> None:
        self._cache = cache
        self._now = now

    async def find(self, key: ResultKey) -> Kept | None:
        """See `ports.KeptResults`."""
        found = await self._cache.get(_name(key))
        if found is None:
            return None
        workflow_id, expires_at = json.loads(found)
        return Kept(UUID(workflow_id), datetime.fromisoformat(expires_at))

    async def keep(self, key: ResultKey, kept: Kept) -> None:
        """See `ports.KeptResults`; what has no end, or is over, is not for here."""
        if kept.expires_at is None or not kept.holds(now := self._now()):
            return
        value = json.dumps([str(kept.workflow_id), kept.expires_at.isoformat()])
        ttl_s = math.ceil((kept.expires_at - now).total_seconds())
        await self._cache.put(_name(key), value.encode(), ttl_s)


def _name(key: ResultKey) -> str:
    return f"result.{key.scope}.{key.capability_id}.{key.revision}.{key.digest}"
