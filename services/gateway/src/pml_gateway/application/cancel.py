"""The cancel use case: an authorised caller ends a workflow."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pml_gateway.application.workflow_service import WorkflowService, no_such_workflow
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.workflow.cancellation import Cancel, require_open
from pml_gateway.domain.workflow.events import Cancelled
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import Caller

_STOPS_WITHIN_S: Final = 10.0


@dataclass(frozen=True)
class Cancellations:
    """Cancels workflows; repeating a cancellation changes nothing."""

    workflows: WorkflowService
    now: Callable[[], datetime]

    async def cancel(self, caller: Caller, workflow_id: UUID, cancel: Cancel) -> ExecuteResponse:
        """End a workflow and build the response for its state then. Raises NotFound, Conflict where
        it has ended, and errors of storage."""
        cancelled = Cancelled(caller.principal, self.now(), cancel.reason)

        def step(workflow: Workflow) -> Step:
            require_open(workflow)
            return self.workflows.advance(workflow, cancelled)

        await self.workflows.known(caller.scope, workflow_id)  # it may have ended a moment ago
        after = await self.workflows.step(caller.scope, workflow_id, step)
        if after is None:
            raise no_such_workflow(caller.scope, workflow_id)
        latest = await self.workflows.wait_for_end(after) if cancel.wait else after
        await self.workflows.deliver(latest, caller.principal)
        return await self.workflows.response(latest)

    async def stop(self, caller: Caller, workflow_id: UUID, cancel: Cancel) -> ExecuteResponse:
        """End a workflow as `cancel` does, and wait a few seconds for its executor to end its
        run."""
        answer = await self.cancel(caller, workflow_id, cancel)
        if answer.status != "running":
            return answer
        ended = await self.workflows.wait_for_result(caller.scope, workflow_id, _STOPS_WITHIN_S)
        if ended is None:
            return answer
        await self.workflows.deliver(ended, caller.principal)
        return await self.workflows.response(ended)
