"""Cache of the runs that go on, as their tool calls are checked against them."""

from collections import OrderedDict
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.executor import CancelRun, RunFinished
from pml_common.contracts.gateway import CallTool, WorkflowFinished
from pml_common.contracts.scope import Scope
from pml_gateway.domain.tool_calls.call_ruling import Run, run_of
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import WorkflowStore

_MAX_RUNS = 256
"""Above the usual number of concurrent runs; others are read from the store."""


class RunBeingCancelled(Exception):
    """The run was cancelled, and its executor has not received that yet."""


class RunCache:
    """Caches runs until they end; a run that is not cached is read from the store, so that any
    gateway can serve its calls."""

    def __init__(self, store: WorkflowStore) -> None:
        self._store = store
        self._runs: OrderedDict[tuple[Scope, UUID], Run] = OrderedDict()

    def put(self, workflow: Workflow) -> None:
        """Cache the run of a workflow's current state, or drop it where no run goes on; results of
        the same run stay cached."""
        key, run = (workflow.scope, workflow.workflow_id), run_of(workflow)
        before = self._runs.pop(key, None)
        if run is None:
            return
        if before is not None:
            run.results, run.kept = before.results, before.kept
        self._runs[key] = run
        if len(self._runs) > _MAX_RUNS:
            self._runs.popitem(last=False)

    async def find(self, call: CallTool) -> Run | None:
        """Return the run that a call belongs to; None where it does not go on, or under another
        grant than the call names. Raises RunBeingCancelled, StorageUnavailable."""
        key = call.scope, call.workflow_id
        run = self._runs.get(key)
        if run is None or run.digest != call.grant_digest:
            workflow = await self._store.get(*key)
            if workflow is not None:
                if workflow.state == "running" and workflow.error is not None:
                    raise RunBeingCancelled(workflow.error.message)
                self.put(workflow)
            run = self._runs.get(key)
        return run if run is not None and run.digest == call.grant_digest else None

    def is_known(self, scope: Scope, workflow_id: str) -> bool:
        """Whether the run of this workflow is cached."""
        return (scope, UUID(workflow_id)) in self._runs

    async def on_end(self, end: RunFinished | WorkflowFinished | CancelRun) -> None:
        """Drop a run that has ended or is being cancelled."""
        self._runs.pop((end.scope, end.workflow_id), None)


def call_keys(call: CallTool, node_ids: set[str], occurrences: int) -> dict[UUID, str]:
    """Return the idempotency keys of all calls of some nodes in a call's run, each with its node
    id, for so many `occurrences` of each node and both attempts."""
    found: dict[UUID, str] = {}
    for node_id in node_ids:
        for occurrence in range(occurrences):
            first = ids.call_trace_id(call.workflow_id, node_id, occurrence)
            found |= {first: node_id, ids.effect_id(first, "again"): node_id}
    return found
