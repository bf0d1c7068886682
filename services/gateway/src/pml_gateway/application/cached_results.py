"""Results of capabilities, told again instead of a run (B11)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from opentelemetry import metrics, trace

from pml_common.bus.errors import BusError
from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.decision import Policy
from pml_common.contracts.registry import DescribeCapabilities
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_common.telemetry import vocabulary
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
from pml_gateway.ports import KeptResults, KnownTools, LastingResults, WorkflowStore

log = logging.getLogger(__name__)
_lookups = metrics.get_meter(__name__).create_counter(vocabulary.CACHE_LOOKUPS)

Outcome = Literal["hit", "miss", "stale", "unavailable"]
"""`stale`: a result is there and must not be told any more."""

_AWAY = (BusError, StorageUnavailable)


@dataclass(frozen=True)
class ResultCache:
    """What was kept, `memoized` for a time or `lasting`, and what tells whether it still holds.

    A cache that does not answer is an empty one: the capability runs.
    """

    memoized: KeptResults
    lasting: LastingResults
    workflows: WorkflowStore
    tools: KnownTools
    query_client: QueryClient
    policy_of: Callable[[Scope], Policy]
    now: Callable[[], datetime]

    async def find(self, record: CapabilityRecord, request: ExecuteRequest) -> Workflow | None:
        """The earlier workflow whose result answers this call, if there is one. The open span says
        how it went, and it is counted."""
        if not is_cached(record, request):
            return None
        try:
            outcome, workflow = await self._look_up(record, request)
        except _AWAY as outage:
            log.warning("%s: %s runs: its cache is away: %s", record.scope, record.name, outage)
            outcome, workflow = "unavailable", None
        trace.get_current_span().set_attribute(vocabulary.CACHE_OUTCOME, outcome)
        _lookups.add(1, {vocabulary.CACHE_OUTCOME: outcome})
        return workflow

    async def keep(
        self, record: CapabilityRecord, request: ExecuteRequest, workflow: Workflow
    ) -> None:
        """Keep the result of a workflow that ended, where it may be told again."""
        if not is_cached(record, request):
            return
        kept = cacheable(workflow, record, self.tools.find)
        if kept is None:
            return
        try:
            await self._results(record).keep(key_of(record, request.arguments), kept)
        except _AWAY as outage:
            log.warning("%s: a result of %s is not kept: %s", record.scope, record.name, outage)

    async def drop_old(self, record: CapabilityRecord) -> None:
        """Make room: nobody asks for what was kept under earlier settings."""
        try:
            await self.lasting.drop(record.scope, record.capability_id, record.cache.revision)
        except StorageUnavailable as outage:
            log.warning("%s: old results of %s stay: %s", record.scope, record.name, outage)

    def _results(self, record: CapabilityRecord) -> KeptResults:
        return self.memoized if record.cache.policy == "memoize" else self.lasting

    async def _look_up(
        self, record: CapabilityRecord, request: ExecuteRequest
    ) -> tuple[Outcome, Workflow | None]:
        kept = await self._results(record).find(key_of(record, request.arguments))
        if kept is None or not kept.is_valid(self.now()):
            return "miss", None
        workflow = await self.workflows.get(record.scope, kept.workflow_id)
        if workflow is None or workflow.analysis is None:
            return "miss", None
        why_not = outdated(workflow.analysis, record, await self._standing(workflow.analysis))
        if why_not is not None:
            log.info("%s: %s runs again: %s", record.scope, record.name, why_not)
            return "stale", None
        return "hit", workflow

    async def _standing(self, analysis: ExecutionAnalyzed) -> CurrentState:
        scope = analysis.scope
        nested = await self._described(scope, nested_references(analysis))
        return CurrentState(self.policy_of(scope), self.tools.find, nested)

    async def _described(
        self, scope: Scope, references: tuple[str, ...]
    ) -> dict[str, CapabilityDescription]:
        if not references:
            return {}
        query = DescribeCapabilities(scope=scope, references=references)
        answer = await self.query_client.request(catalog.DESCRIBE_CAPABILITIES, query)
        told = ((each.reference, each.capability) for each in answer.references)
        return {reference: found for reference, found in told if found is not None}
