"""Cached results with an expiry, in the bus's key-value cache, shared by all replicas."""

import json
import math
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.bus.port import KeyValueCache
from pml_gateway.domain.workflow.result_cache import CachedResult, ResultKey
from pml_gateway.ports import KeptResults


class BusResults(KeptResults):
    """The bus deletes entries when they expire."""

    def __init__(self, cache: KeyValueCache, now: Callable[[], datetime]) -> None:
        self._cache = cache
        self._now = now

    @override
    async def find(self, key: ResultKey) -> CachedResult | None:
        found = await self._cache.get(_name(key))
        if found is None:
            return None
        workflow_id, expires_at = json.loads(found)
        return CachedResult(UUID(workflow_id), datetime.fromisoformat(expires_at))

    @override
    async def keep(self, key: ResultKey, kept: CachedResult) -> None:
        """Store an entry; one without an expiry, or expired already, is ignored."""
        if kept.expires_at is None or not kept.is_valid(now := self._now()):
            return
        value = json.dumps([str(kept.workflow_id), kept.expires_at.isoformat()])
        ttl_s = math.ceil((kept.expires_at - now).total_seconds())
        await self._cache.put(_name(key), value.encode(), ttl_s)


def _name(key: ResultKey) -> str:
    return f"result.{key.scope}.{key.capability_id}.{key.revision}.{key.digest}"
