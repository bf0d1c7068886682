"""Workflows as this process saw them last, so that the next step need not read them."""

from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_gateway.domain.workflow.workflow import Workflow

MOST = 256


class Copy(NamedTuple):
    """A workflow and the number of steps it had taken."""

    workflow: Workflow
    revision: int


class WorkflowCache:
    """The copies used last, of workflows whose next step a message will cause. Each may be out of
    date: what is made of one counts only where the store still has its revision."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[Scope, UUID], Copy] = OrderedDict()

    def keep(self, workflow: Workflow, revision: int) -> None:
        """Keep a workflow that waits for a message; people and the clock read for themselves."""
        if workflow.state not in ("requested", "running"):
            return
        self._kept[workflow.scope, workflow.workflow_id] = Copy(workflow, revision)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def take(self, scope: Scope, workflow_id: UUID) -> Copy | None:
        """The copy, once: a step makes another."""
        return self._kept.pop((scope, workflow_id), None)
