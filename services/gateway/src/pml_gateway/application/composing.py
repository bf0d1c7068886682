"""Programs that PML writes: merged of several capabilities, or lifted from variants. They are
analysed under the policy of their caller's scope and stored like any other."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog, ids
from pml_common.contracts.analyzer import AnalysisRejected, AnalyzeProgram, ExecutionAnalyzed
from pml_common.contracts.curation import LiftCapability, SavedCapability
from pml_common.contracts.decision import Policy
from pml_common.contracts.dns import ChangedRecord
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.merging import MergeCapabilities
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.curation import SaveProgram
from pml_gateway.domain.api.records import MergeSources
from pml_gateway.domain.workflow.provenance import is_analysis_of
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import Caller, ComposedPrograms, WorkflowStore


@dataclass(frozen=True)
class Composing(ComposedPrograms):
    """Asks the registry for a program, the analyzer for its analysis, and the registry to store
    both."""

    query_client: QueryClient
    store: WorkflowStore
    policy_of: Callable[[Scope], Policy]
    now: Callable[[], datetime]

    @override
    async def merge(
        self, caller: Caller, asked: MergeSources, request_id: UUID, timeout_s: float
    ) -> ChangedRecord:
        async with _bounded(timeout_s):
            planned = asked.query(caller.scope, caller.principal, request_id).model_copy(
                update={"is_admin": caller.is_admin}
            )
            plan = await self.query_client.request(catalog.PLAN_MERGE, planned, timeout=timeout_s)
            if plan.made is not None:
                return plan.made
            analysis = await self._analysed(caller, plan.code, plan.intent, timeout_s)
            merge = MergeCapabilities(
                scope=caller.scope,
                principal=caller.principal,
                is_admin=caller.is_admin,
                request_id=request_id,
                name=asked.name,
                sources=tuple(source.reference for source in plan.sources),
                analysis=analysis,
            )
            made = await self.query_client.request(
                catalog.MERGE_CAPABILITIES, merge, timeout=timeout_s
            )
            notices = dict.fromkeys((*plan.notices, *made.notices))
            return made.model_copy(update={"notices": tuple(notices)})

    @override
    async def save(self, caller: Caller, asked: SaveProgram, timeout_s: float) -> SavedCapability:
        async with _bounded(timeout_s):
            lifted = await self._lifted(caller, asked, timeout_s) if asked.lift else None
            query = asked.query(caller.scope, caller.principal, lifted)
            return await self.query_client.request(
                catalog.SAVE_CAPABILITY, query, timeout=timeout_s
            )

    async def _lifted(
        self, caller: Caller, asked: SaveProgram, timeout_s: float
    ) -> ExecutionAnalyzed:
        reference = asked.capability
        if asked.workflow_id is not None:
            workflow = await self.store.get(caller.scope, asked.workflow_id)
            reference = _program_of(workflow, asked.workflow_id)
        lift = LiftCapability(
            scope=caller.scope, principal=caller.principal, reference=reference or ""
        )
        found = await self.query_client.request(catalog.LIFT_CAPABILITY, lift, timeout=timeout_s)
        return await self._analysed(caller, found.code, None, timeout_s)

    async def _analysed(
        self, caller: Caller, code: str, intent: str | None, timeout_s: float
    ) -> ExecutionAnalyzed:
        """Analyse a program as if it were to run. Raises QueryFailed `invalid` for one that must
        not, with the positions."""
        workflow_id = ids.scoped_id(caller.scope, "composed", caller.principal, code)
        requested = ExecutionRequested(
            scope=caller.scope,
            event_id=ids.effect_id(workflow_id, "execution-requested"),
            workflow_id=workflow_id,
            principal=caller.principal,
            code=code,
            intent=intent,
            policy=self.policy_of(caller.scope),
            requested_at=self.now(),
        )
        query = AnalyzeProgram(scope=caller.scope, requested=requested)
        reply = await self.query_client.request(catalog.ANALYZE, query, timeout=timeout_s)
        if reply.rejected is not None:
            raise QueryFailed("invalid", _refusal(reply.rejected))
        analysis = reply.analyzed
        if analysis is None or not is_analysis_of(requested, analysis):
            raise QueryFailed("unavailable", "the analyzer answered with another analysis")
        if analysis.decision.verdict == "deny":
            reasons = " ".join(analysis.decision.reasons)
            raise QueryFailed("conflict", f"the policy denies this program: {reasons}")
        return analysis


@asynccontextmanager
async def _bounded(timeout_s: float) -> AsyncGenerator[None]:
    """Bound all that is asked. Raises QueryFailed `unavailable`."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except (TimeoutError, StorageUnavailable) as outage:
        why = str(outage) or f"there was no answer within {timeout_s:g} s"
        raise QueryFailed("unavailable", f"{why}; try again") from outage


def _refusal(rejected: AnalysisRejected) -> str:
    faults = [
        f"line {each.line}, column {each.column}: {each.message}" for each in rejected.diagnostics
    ]
    return f"the program is refused: {'; '.join(faults)}"


def _program_of(workflow: Workflow | None, workflow_id: UUID) -> str:
    """Return the id of a workflow's program. Raises QueryFailed."""
    if workflow is None:
        raise QueryFailed("not_found", f"there is no workflow {workflow_id}")
    analysis = workflow.analysis
    if analysis is None or analysis.dry_run:
        raise QueryFailed("conflict", f"workflow {workflow_id} has run no program")
    return str(analysis.capability.capability_id)
