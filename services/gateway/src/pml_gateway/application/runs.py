"""The runs that go on, as their tool calls are compared with them."""

from collections import OrderedDict
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.executor import CancelRun, RunFinished
from pml_common.contracts.gateway import CallTool, WorkflowFinished
from pml_common.contracts.scope import Scope
from pml_gateway.domain.tool_calls.call_ruling import Run, run_of
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import WorkflowStore

_MOST = 256
"""Runs; so many hardly go on at once."""


class BeingCancelled(Exception):
    """Somebody has cancelled the run, and its executor does not know it yet."""


class Runs:
    """Keeps what is known of runs until they end; any gateway reads the rest from the store."""

    def __init__(self, workflows: WorkflowStore) -> None:
        self._workflows = workflows
        self._known: OrderedDict[tuple[Scope, UUID], Run] = OrderedDict()

    def know(self, workflow: Workflow) -> None:
        """Take note of how a workflow stands now; results of the same run are kept."""
        key, run = (workflow.scope, workflow.workflow_id), run_of(workflow)
        before = self._known.pop(key, None)
        if run is None:
            return
        if before is not None:
            run.results, run.kept = before.results, before.kept
        self._known[key] = run
        if len(self._known) > _MOST:
            self._known.popitem(last=False)

    async def of(self, call: CallTool) -> Run | None:
        """The run that a call belongs to; None where it does not go on, or not under the grant that
        the call names. Raises BeingCancelled, StorageUnavailable."""
        key = call.scope, call.workflow_id
        run = self._known.get(key)
        if run is None or run.digest != call.grant_digest:
            workflow = await self._workflows.get(*key)
            if workflow is not None:
                if workflow.state == "running" and workflow.error is not None:
                    raise BeingCancelled(workflow.error.message)
                self.know(workflow)
            run = self._known.get(key)
        return run if run is not None and run.digest == call.grant_digest else None

    def is_known(self, scope: Scope, workflow_id: str) -> bool:
        """Whether something of this run is kept."""
        return (scope, UUID(workflow_id)) in self._known

    async def on_end(self, end: RunFinished | WorkflowFinished | CancelRun) -> None:
        """Forget a run that has ended, or is to end."""
        self._known.pop((end.scope, end.workflow_id), None)


def keys_of(call: CallTool, node_ids: set[str], occurrences: int) -> dict[UUID, str]:
    """The idempotency keys of the calls of some nodes, each with its node."""
    found: dict[UUID, str] = {}
    for node_id in node_ids:
        for occurrence in range(occurrences):
            first = ids.call_trace_id(call.workflow_id, node_id, occurrence)
            found |= {first: node_id, ids.effect_id(first, "again"): node_id}
    return found
