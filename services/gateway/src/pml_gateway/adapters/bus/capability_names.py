"""Names of capabilities: queried once, then updated by the registry's events."""

import logging
from collections import OrderedDict
from uuid import UUID

from typing_extensions import override

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.registry import (
    CapabilityChanged,
    ReserveName,
    ResolveCapability,
    SettleName,
)
from pml_common.contracts.scope import Scope
from pml_gateway.ports import CapabilityNames, NameUnsettled

log = logging.getLogger(__name__)

_MOST_KNOWN = 10_000
_PATIENCE_S = 1.0


class CachedCapabilityNames(CapabilityNames):
    def __init__(self, query_client: QueryClient) -> None:
        self._query_client = query_client
        self._names: OrderedDict[tuple[Scope, UUID], str] = OrderedDict()

    async def on_capability_changed(self, change: CapabilityChanged) -> None:
        """Update a capability's name. The provisional one of its creation replaces none: it may
        have been given another before this is heard. Nor does a fork's: it is a second record."""
        is_known = (change.scope, change.capability_id) in self._names
        if change.change == "forked" or (change.change == "created" and is_known):
            return
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

    @override
    async def reserve(
        self, requested: ExecutionRequested, analysis: ExecutionAnalyzed
    ) -> str | None:
        if requested.name is None or requested.dry_run is not None:
            return None
        query = ReserveName(
            scope=requested.scope,
            workflow_id=requested.workflow_id,
            name=requested.name,
            analysis=analysis,
            update=requested.update,
            version_tag=requested.version_tag,
            change_summary=requested.change_summary,
        )
        try:
            await self._query_client.request(catalog.RESERVE_NAME, query)
        except QueryFailed as failure:
            if failure.code in ("conflict", "invalid"):
                return failure.message
            raise NameUnsettled(requested.name, str(failure)) from failure
        return None

    @override
    async def settle(self, analysis: ExecutionAnalyzed, *, succeeded: bool) -> str | None:
        query = SettleName(
            scope=analysis.scope, workflow_id=analysis.workflow_id, succeeded=succeeded
        )
        try:
            answer = await self._query_client.request(catalog.SETTLE_NAME, query)
        except QueryFailed as error:
            if error.code != "conflict":
                raise NameUnsettled(analysis.capability.name or "", str(error)) from error
            log.warning("the name %s is not given: %s", analysis.capability.name, error)
            return None
        known = analysis.scope, analysis.capability.capability_id
        if answer.name is None:
            # Given by then, or not at all: the name that is known here may be an old one.
            self._names.pop(known, None)
        else:
            self._put(*known, answer.name)
        return answer.name

    def _put(self, scope: Scope, capability_id: UUID, name: str) -> None:
        self._names[scope, capability_id] = name
        self._names.move_to_end((scope, capability_id))
        if len(self._names) > _MOST_KNOWN:
            self._names.popitem(last=False)
