"""Names of capabilities: queried once, then updated by the registry's events."""

import logging
from collections import OrderedDict
from uuid import UUID

from typing_extensions import override

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.registry import CapabilityChanged, ResolveCapability
from pml_common.contracts.scope import Scope
from pml_gateway.ports import CapabilityNames

log = logging.getLogger(__name__)

_MOST_KNOWN = 10_000
_PATIENCE_S = 1.0


class CachedCapabilityNames(CapabilityNames):
    def __init__(self, query_client: QueryClient) -> None:
        self._query_client = query_client
        self._names: OrderedDict[tuple[Scope, UUID], str] = OrderedDict()

    async def on_capability_changed(self, change: CapabilityChanged) -> None:
        """Update a capability's name."""
        self._put(change.scope, change.capability_id, change.name)

    @override
    async def name_of(self, scope: Scope, capability_id: UUID) -> str | None:
        known = self._names.get((scope, capability_id))
        if known is not None:
            return known
        query = ResolveCapability(scope=scope, reference=str(capability_id))
        try:
            record = await self._query_client.request(
                catalog.RESOLVE_CAPABILITY, query, timeout=_PATIENCE_S
            )
        except QueryFailed as error:
            log.info("the name of capability %s is not known: %s", capability_id, error)
            return None
        self._put(scope, capability_id, record.name)
        return record.name

    def _put(self, scope: Scope, capability_id: UUID, name: str) -> None:
        self._names[scope, capability_id] = name
        self._names.move_to_end((scope, capability_id))
        if len(self._names) > _MOST_KNOWN:
            self._names.popitem(last=False)
