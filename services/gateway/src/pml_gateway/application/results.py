"""The results use case: results of workflows and tasks, for callers who come back for them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pml_gateway.application.callers_elsewhere import CallersElsewhere
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.errors import Gone, ResultUnavailable
from pml_gateway.domain.api.task_results import (
    GetTaskResult,
    console_response,
    paged,
    task_response,
)
from pml_gateway.ports import Caller


@dataclass(frozen=True)
class Results:
    """Results of workflows, and of their tasks for `ttl` after the end."""

    workflows: WorkflowService
    elsewhere: CallersElsewhere
    ttl: timedelta
    now: Callable[[], datetime]

    async def get(self, caller: Caller, asked: GetTaskResult) -> ExecuteResponse:
        """Wait for a workflow, and build the response for its state or for one of its tasks. Raises
        ResultUnavailable, InvalidRequest and errors of storage."""
        if asked.wait_s:
            await self.elsewhere.join(caller.scope, asked.workflow_id)
        try:
            found = await self.workflows.wait_for_result(
                caller.scope, asked.workflow_id, asked.wait_s
            )
        except Gone as gone:
            raise ResultUnavailable("expired", str(gone)) from gone
        if found is None:
            raise ResultUnavailable("unknown", f"no workflow {asked.workflow_id} in {caller.scope}")
        if asked.part == "console":
            return console_response(found, asked)
        if asked.task_id is not None:
            return paged(task_response(found, asked.task_id, self.now(), self.ttl), asked)
        await self.workflows.deliver(found, caller.principal)
        response = await self.workflows.response(found)
        return paged(response, asked) if response.status == "success" else response
