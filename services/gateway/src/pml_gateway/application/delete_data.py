"""The deletion use case: a caller deletes the data of an own workflow."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pml_gateway.application.workflow_service import WorkflowService, no_such_workflow
from pml_gateway.domain.workflow.deletion import deleted
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import Caller


@dataclass(frozen=True)
class Deletions:
    """Deletes the data of workflows; a repetition changes nothing."""

    workflows: WorkflowService
    now: Callable[[], datetime]

    async def delete(self, caller: Caller, workflow_id: UUID) -> None:
        """Delete the data of a workflow of this caller. Raises NotFound, Conflict where it has not
        ended, and errors of storage."""

        def step(workflow: Workflow) -> Step:
            if workflow.requested.principal != caller.principal:
                raise no_such_workflow(caller.scope, workflow_id)
            return deleted(workflow, self.now())

        await self.workflows.known(caller.scope, workflow_id)  # it may have ended a moment ago
        if await self.workflows.step(caller.scope, workflow_id, step) is None:
            raise no_such_workflow(caller.scope, workflow_id)
