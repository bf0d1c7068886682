"""Cache of workflows as this process saw them last, so that the next step need not read them."""

from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_gateway.domain.workflow.workflow import Workflow

MOST = 256


class CachedWorkflow(NamedTuple):
    """A workflow and the number of steps it had taken."""

    workflow: Workflow
    revision: int


class WorkflowCache:
    """The most recently used workflows whose next step a message will cause. Each may be out of
    date: a step on it is stored only if the store still has its revision."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._entries: OrderedDict[tuple[Scope, UUID], CachedWorkflow] = OrderedDict()

    def put(self, workflow: Workflow, revision: int) -> None:
        """Add a workflow that waits for a message; steps of people and timers read the store."""
        if workflow.state not in ("requested", "running"):
            return
        self._entries[workflow.scope, workflow.workflow_id] = CachedWorkflow(workflow, revision)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def find(self, scope: Scope, workflow_id: UUID) -> CachedWorkflow | None:
        """Return a workflow."""
        return self._entries.get((scope, workflow_id))

    def take(self, scope: Scope, workflow_id: UUID) -> CachedWorkflow | None:
        """Remove and return a workflow: its step adds another."""
        return self._entries.pop((scope, workflow_id), None)
