"""Somebody wants no more of a workflow."""

from dataclasses import dataclass
from uuid import UUID

from pml_gateway.application.decide import unknown
from pml_gateway.application.execute import Executions
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.workflow.cancellation import Cancel, require_open
from pml_gateway.domain.workflow.events import Cancelled
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from pml_gateway.ports import Caller, Outgoing


@dataclass(frozen=True)
class Cancellations:
    """Cancels workflows; again, it changes nothing."""

    executions: Executions

    async def cancel(self, caller: Caller, workflow_id: UUID, cancel: Cancel) -> ExecuteResponse:
        """End a workflow and tell how it stands then. Raises NotFound, and Conflict where it has
        ended; errors of storage."""
        executions = self.executions
        wish = Cancelled(caller.principal, executions.now(), cancel.reason)

        def step(workflow: Workflow) -> Step:
            require_open(workflow)
            return advance(workflow, wish, executions.rules)

        taken = await executions.workflows.change(caller.scope, workflow_id, step)
        if taken is None:
            raise unknown(caller.scope, workflow_id)
        after, effects = taken
        await executions.relay.publish([Outgoing(each, after.traceparent) for each in effects])
        executions.runs.know(after)
        executions.notifier.notify(after)
        if cancel.wait:
            return await executions.end_of(after)
        return await executions.answer(after)
