"""The cancel use case: an authorised caller ends a workflow."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pml_common.errors import Retryable
from pml_gateway.application.callers_elsewhere import CallersElsewhere
from pml_gateway.application.workflow_service import WorkflowService, no_such_workflow
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.errors import Conflict, NotFound
from pml_gateway.domain.workflow.cancellation import Cancel, require_open
from pml_gateway.domain.workflow.events import Cancelled
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import Caller

log = logging.getLogger(__name__)

_STOPS_WITHIN_S: Final = 10.0
_WITHDRAW_AGAIN_S: Final = (0.2, 1.0)
_WITHDRAWN: Final = Cancel(reason="the call was cancelled")


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


class Withdrawals:
    """Ends workflows whose callers have cancelled their calls, apart from those calls."""

    def __init__(self, cancellations: Cancellations, elsewhere: CallersElsewhere) -> None:
        self._cancellations = cancellations
        self._elsewhere = elsewhere
        self._tasks: set[asyncio.Task[None]] = set()

    def withdraw(self, caller: Caller, workflow_id: UUID) -> None:
        """Begin to end a workflow, unless another caller waits for it."""
        task = asyncio.create_task(self._end(caller, workflow_id), name=f"withdraw {workflow_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait until what was begun is done."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _end(self, caller: Caller, workflow_id: UUID) -> None:
        for delay_s in (*_WITHDRAW_AGAIN_S, None):
            if self._cancellations.workflows.is_awaited(caller.scope, workflow_id):
                return
            if await self._elsewhere.await_workflow(caller.scope, workflow_id):
                return
            try:
                await self._cancellations.cancel(caller, workflow_id, _WITHDRAWN)
            except Conflict:
                return
            except (NotFound, Retryable) as error:
                # It may be on its way: the call was cancelled while it was being accepted.
                log.info("%s is not cancelled: %s", workflow_id, error)
            else:
                return
            if delay_s is not None:
                await asyncio.sleep(delay_s)
