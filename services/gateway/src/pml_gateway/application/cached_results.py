"""Cached results of capabilities, returned instead of a run."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from opentelemetry import trace

from pml_common.bus.errors import BusError
from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.decision import Policy
from pml_common.contracts.registry import DescribeCapabilities
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_common.telemetry import metrics, vocabulary
from pml_common.telemetry.instruments import Sum
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.result_cache import (
    CurrentState,
    cacheable,
    is_cached,
    key_of,
    nested_references,
    outdated,
)
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import KeptResults, KnownTools, LastingResults, LiveWorkflowStore

log = logging.getLogger(__name__)
_lookups = Sum(metrics.CACHE_LOOKUPS)

Outcome = Literal["hit", "miss", "stale", "unavailable"]
"""`stale`: a result is cached and must not be returned any more."""

_OUTAGES = (BusError, StorageUnavailable)


@dataclass(frozen=True)
class ResultCache:
    """Cached results, `memoized` for a time or `persistent`, and the state that they must still
    match. While a store of results is unavailable, the cache counts as empty: the capability runs.
    """

    memoized: KeptResults
    persistent: LastingResults
    store: LiveWorkflowStore
    tools: KnownTools
    query_client: QueryClient
    policy_of: Callable[[Scope], Policy]
    now: Callable[[], datetime]

    async def find(
        self, principal: str, record: CapabilityRecord, request: ExecuteRequest
    ) -> Workflow | None:
        """Return the earlier workflow whose result answers this principal's call, if any. The
        outcome is an attribute of the open span and is counted."""
        if not is_cached(record, request):
            return None
        try:
            outcome, workflow = await self._look_up(principal, record, request)
        except _OUTAGES as outage:
            log.warning("%s: no cached result of %s: %s", record.scope, record.name, outage)
            outcome, workflow = "unavailable", None
        trace.get_current_span().set_attribute(vocabulary.CACHE_OUTCOME, outcome)
        _lookups.add(1, outcome)
        return workflow

    async def keep(
        self, record: CapabilityRecord, request: ExecuteRequest, workflow: Workflow
    ) -> None:
        """Cache the result of a workflow that ended, where it may be returned again."""
        if not is_cached(record, request):
            return
        if cacheable(workflow, record, self.tools.find) is None:
            return
        try:
            await self.store.settle(workflow.scope, workflow.workflow_id)
            stored = await self.store.get(workflow.scope, workflow.workflow_id)
            # Another gateway may have taken steps that this one has not heard of: an approval.
            kept = stored and cacheable(stored, record, self.tools.find)
            if kept:
                await self._results(record).keep(key_of(record, request.arguments), kept)
        except _OUTAGES as outage:
            log.warning("%s: a result of %s is not cached: %s", record.scope, record.name, outage)

    async def drop_old(self, record: CapabilityRecord) -> None:
        """Delete results cached under earlier settings: no call can match them."""
        try:
            await self.persistent.drop(record.scope, record.capability_id, record.cache.revision)
        except StorageUnavailable as outage:
            log.warning(
                "%s: old results of %s are not deleted: %s", record.scope, record.name, outage
            )

    def _results(self, record: CapabilityRecord) -> KeptResults:
        return self.memoized if record.cache.policy == "memoize" else self.persistent

    async def _look_up(
        self, principal: str, record: CapabilityRecord, request: ExecuteRequest
    ) -> tuple[Outcome, Workflow | None]:
        kept = await self._results(record).find(key_of(record, request.arguments))
        if kept is None or not kept.is_valid(self.now()):
            return "miss", None
        workflow = await self.store.get(record.scope, kept.workflow_id)
        if workflow is None or workflow.analysis is None or workflow.state != "succeeded":
            return "miss", None
        present = await self._present(principal, workflow.analysis)
        why_not = outdated(workflow.analysis, record, present)
        if why_not is not None:
            log.info("%s: %s runs again: %s", record.scope, record.name, why_not)
            return "stale", None
        return "hit", workflow

    async def _present(self, principal: str, analysis: ExecutionAnalyzed) -> CurrentState:
        scope = analysis.scope
        nested = await self._described(scope, principal, nested_references(analysis))
        return CurrentState(self.policy_of(scope), self.tools.find, nested)

    async def _described(
        self, scope: Scope, principal: str, references: tuple[str, ...]
    ) -> dict[str, CapabilityDescription]:
        if not references:
            return {}
        query = DescribeCapabilities(scope=scope, principal=principal, references=references)
        answer = await self.query_client.request(catalog.DESCRIBE_CAPABILITIES, query)
        described = ((each.reference, each.capability) for each in answer.references)
        return {reference: found for reference, found in described if found is not None}
