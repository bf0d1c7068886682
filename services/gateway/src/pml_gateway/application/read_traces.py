"""The use case of traces: those of the learner, with what became of their large results."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.learner import (
    ExecutionTrace,
    FindTrace,
    LargeResult,
    ListTraces,
    TracePage,
)
from pml_common.contracts.scope import Scope
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import WorkflowStore


@dataclass(frozen=True)
class Traces:
    """Reads traces. Results of tasks are kept for `task_ttl` after the end of their workflow, its
    own for `ttl`."""

    query_client: QueryClient
    workflows: WorkflowStore
    task_ttl: timedelta
    ttl: timedelta
    now: Callable[[], datetime]

    async def page(self, query: ListTraces) -> TracePage:
        """Return a page of traces. Raises QueryFailed, StorageUnavailable."""
        page = await self.query_client.request(catalog.LIST_TRACES, query)
        with_large = {each.workflow_id for each in page.traces if each.large_results}
        known = {each: await self.workflows.get(query.scope, each) for each in sorted(with_large)}
        traces = tuple(self._told(trace, known) for trace in page.traces)
        return page.model_copy(update={"traces": traces})

    async def find(self, scope: Scope, trace_id: UUID) -> ExecutionTrace:
        """Return one trace. Raises QueryFailed, StorageUnavailable."""
        query = FindTrace(scope=scope, trace_id=trace_id)
        trace = await self.query_client.request(catalog.FIND_TRACE, query)
        if not trace.large_results:
            return trace
        workflow_id = trace.workflow_id
        return self._told(trace, {workflow_id: await self.workflows.get(scope, workflow_id)})

    def _told(self, trace: ExecutionTrace, known: dict[UUID, Workflow | None]) -> ExecutionTrace:
        workflow = known.get(trace.workflow_id)
        large = tuple(self._kept(each, workflow) for each in trace.large_results)
        return trace.model_copy(update={"large_results": large}) if large else trace

    def _kept(self, large: LargeResult, workflow: Workflow | None) -> LargeResult:
        if workflow is None or workflow.deleted_at is not None:
            return large.model_copy(update={"expired": True})
        if workflow.finished_at is None:  # its end is being stored
            return large
        until = workflow.finished_at + (self.ttl if large.task_id is None else self.task_ttl)
        return large.model_copy(update={"kept_until": until, "expired": self.now() >= until})
