"""The tasks use case: workflows as tasks that their callers poll, answer and cancel."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.gateway import DecidedThrough
from pml_gateway.application.cancel import Cancellations
from pml_gateway.application.dependency_errors import as_api_errors
from pml_gateway.application.elicit import Elicitations
from pml_gateway.application.workflow_service import WorkflowService, no_such_workflow
from pml_gateway.domain.api.approval_form import FormAnswer
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.mcp_tasks import key_of
from pml_gateway.domain.workflow.cancellation import Cancel
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import Caller, TaskApi, TaskState

_CANCELLED = Cancel(reason="its task was cancelled")


@dataclass(frozen=True)
class WorkflowTasks(TaskApi):
    """Tasks of the callers of workflows, and of nobody else. Every method raises NotFound, and
    Unavailable."""

    workflows: WorkflowService
    elicitations: Elicitations
    cancellations: Cancellations

    @override
    async def keep(self, caller: Caller, workflow_id: UUID) -> None:
        with as_api_errors():
            await self.workflows.store.settle(caller.scope, workflow_id)

    @override
    async def state(self, caller: Caller, workflow_id: UUID, *, shows_forms: bool) -> TaskState:
        with as_api_errors():
            workflow = await self._own(caller, workflow_id)
            form = await self.elicitations.form(caller, workflow) if shows_forms else None
            await self.workflows.deliver(workflow, caller.principal)
            return TaskState(workflow, await self.workflows.response(workflow), form)

    @override
    async def answer(
        self,
        caller: Caller,
        workflow_id: UUID,
        answers: Mapping[str, FormAnswer],
        through: DecidedThrough,
    ) -> None:
        with as_api_errors():
            form = await self.elicitations.form(caller, await self._own(caller, workflow_id))
            answer = answers.get(key_of(form.asked)) if form else None
            if form is not None and answer is not None:
                await self.elicitations.decide(caller, form.asked, answer, through)

    @override
    async def cancel(self, caller: Caller, workflow_id: UUID) -> None:
        with as_api_errors(), suppress(Conflict):
            await self._own(caller, workflow_id)
            await self.cancellations.cancel(caller, workflow_id, _CANCELLED)

    async def _own(self, caller: Caller, workflow_id: UUID) -> Workflow:
        found = await self.workflows.read(caller.scope, workflow_id)
        if found is None or found.requested.principal != caller.principal:
            raise no_such_workflow(caller.scope, workflow_id)
        return found
