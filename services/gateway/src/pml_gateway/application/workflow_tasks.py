"""The tasks use case: workflows as tasks that their callers poll, answer and cancel."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.gateway import DecidedThrough
from pml_common.contracts.tool import JsonObject
from pml_gateway.application.cancel import Cancellations
from pml_gateway.application.dependency_errors import as_api_errors
from pml_gateway.application.elicit import Elicitations
from pml_gateway.application.task_inputs import ANSWER_WITHIN_S
from pml_gateway.application.workflow_service import WorkflowService, no_such_workflow
from pml_gateway.domain.api.approval_form import FormAnswer
from pml_gateway.domain.api.errors import Conflict, InvalidRequest
from pml_gateway.domain.api.mcp_tasks import key_of, why_no_answer
from pml_gateway.domain.workflow.cancellation import Cancel
from pml_gateway.domain.workflow.direct_call import is_open_call
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import Caller, OpenInputs, TaskApi, TaskState

_CANCELLED = Cancel(reason="its task was cancelled")


@dataclass(frozen=True)
class WorkflowTasks(TaskApi):
    """Tasks of the callers of workflows, and of nobody else. Every method raises NotFound, and
    Unavailable."""

    workflows: WorkflowService
    elicitations: Elicitations
    cancellations: Cancellations
    inputs: OpenInputs

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
            inputs: Mapping[str, JsonObject] = {}
            if shows_forms and is_open_call(workflow):
                inputs = await self.inputs.find(caller.scope, workflow_id)
            return TaskState(workflow, await self.workflows.response(workflow), form, inputs)

    @override
    async def answer(
        self,
        caller: Caller,
        workflow_id: UUID,
        answers: Mapping[str, FormAnswer],
        inputs: Mapping[str, JsonObject],
        through: DecidedThrough,
    ) -> None:
        with as_api_errors():
            workflow = await self._own(caller, workflow_id)
            form = await self.elicitations.form(caller, workflow)
            answer = answers.get(key_of(form.asked)) if form else None
            if form is not None and answer is not None:
                await self.elicitations.decide(caller, form.asked, answer, through)
            if inputs and is_open_call(workflow):
                await self._take(workflow, inputs)

    @override
    async def cancel(self, caller: Caller, workflow_id: UUID) -> None:
        with as_api_errors(), suppress(Conflict):
            await self._own(caller, workflow_id)
            await self.cancellations.cancel(caller, workflow_id, _CANCELLED)

    async def _take(self, workflow: Workflow, inputs: Mapping[str, JsonObject]) -> None:
        scope, workflow_id = workflow.scope, workflow.workflow_id
        requests = await self.inputs.find(scope, workflow_id)
        given = {key: answer for key, answer in inputs.items() if key in requests}
        for key, answer in given.items():
            why = why_no_answer(requests[key], answer)
            if why is not None:
                raise InvalidRequest(f"inputResponses.{key}", why)
        for key, answer in given.items():
            await self.inputs.answer(scope, workflow_id, key, answer, ANSWER_WITHIN_S)

    async def _own(self, caller: Caller, workflow_id: UUID) -> Workflow:
        found = await self.workflows.read(caller.scope, workflow_id)
        if found is None or found.requested.principal != caller.principal:
            raise no_such_workflow(caller.scope, workflow_id)
        return found
