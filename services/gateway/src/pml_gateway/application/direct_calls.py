"""The direct call use case: one tool call, a workflow of its own, without analysis or sandbox."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import uuid4

from pml_common.bus.errors import BusError
from pml_common.contracts.decision import Policy
from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.storage.errors import StorageUnavailable
from pml_common.telemetry.spans import note_workflow
from pml_gateway.application.cancel import Withdrawals
from pml_gateway.application.execute_program import traceparent
from pml_gateway.application.task_inputs import NoInput, PolledClient, TaskInputs
from pml_gateway.application.tool_calls import Made, ToolCalls
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.tool_calls.ledger import Entry
from pml_gateway.domain.tool_calls.repeatable import repeatable
from pml_gateway.domain.tool_calls.tool_result import Answered, inputs_asked
from pml_gateway.domain.workflow.direct_call import STOPPED, begun_call, call_ended, call_of
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import Caller, CallerSide, CallOrigin, ServerInputs

T = TypeVar("T")

log = logging.getLogger(__name__)

_PUBLISH_AGAIN_S: Final = 0.5
_ANSWER_WITHIN_S: Final = 2.0
"""Time for which the answer waits for the end to be published: the ledger has the outcome."""
_CLOSE_WITHIN_S: Final = 2.0
_MOST_UNPUBLISHED: Final = 100
"""While NATS is away, the ends of reads are kept here, those of this many `_TOGETHER_S`."""
_TOGETHER_S: Final = 0.05
"""Time in which the ends of reads are collected, apart from the calls that follow them."""


_ROUNDS: Final = 10
"""Times that a server may ask for input."""
_TOO_MANY_ROUNDS: Final = ToolOutcome(
    status="tool_error",
    message=f"the server asked for input more than {_ROUNDS} times and gave no result",
)


@dataclass(frozen=True)
class DirectCalls:
    """Makes the calls of tools that their callers name and that policy allows.

    A call that may not be repeated is made only once its workflow is stored, and answered once its
    end is: otherwise, what is lost when this process dies is the record of a call that may be made
    again.
    """

    workflows: WorkflowService
    calls: ToolCalls
    publish: Callable[[CallEnded], Awaitable[object]]
    now: Callable[[], datetime]
    require_ready: Callable[[], Awaitable[None]]
    withdrawals: Withdrawals
    inputs: TaskInputs
    _calls: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _ends: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _pending: list[CallEnded] = field(default_factory=list[CallEnded])

    async def call(
        self,
        caller: Caller,
        tool: ToolDefinition,
        args: JsonObject,
        timeout_s: float,
        side: CallerSide,
        policy: Policy,
    ) -> ToolOutcome | ExecuteResponse:
        """Call a tool; the answer is its outcome, or that its workflow runs, where its caller waits
        no longer. Raises errors of the bus and of storage, after which nothing was called."""
        again = repeatable(tool)
        if not again or len(self._ends) > _MOST_UNPUBLISHED:
            await self.require_ready()
        workflow = begun_call(
            caller.scope,
            caller.principal,
            tool.tool_id,
            args,
            key=uuid4().hex,
            at=self.now(),
            timeout_s=timeout_s,
            patience=self.workflows.rules.patience,
            policy=policy,
            traceparent=traceparent(),
        )
        note_workflow(workflow.workflow_id)
        await self._begin(workflow, is_stored=not again)
        call = call_of(workflow, tool.tool_id)
        polled = None
        if side.as_task and side.client is not None:
            polled = PolledClient(side.client, self.inputs, workflow, self._runs)
            side = replace(side, client=polled)
        origin = CallOrigin(caller, call.idempotency_key, side)
        made = _spawn(self._calls, self._made(workflow, call, origin, polled))
        if side.report is not None:
            await side.report(0, 1, f"0 of 1 calls ended: {tool.tool_id}")
        try:
            await asyncio.wait({made}, timeout=_left(side.answer_by))
            if polled is not None and not made.done():
                await self._become_task(made, polled)
        except asyncio.CancelledError:
            if side.withdrawn():
                self.withdrawals.withdraw(caller, workflow.workflow_id)
            raise
        return made.result() if made.done() else await self.workflows.response(workflow)

    async def close(self) -> None:
        """End what is under way: the outcomes of calls that were begun are unknown."""
        for task in self._calls:
            task.cancel()
        if tasks := self._calls | self._ends:
            _, late = await asyncio.wait(tasks, timeout=_CLOSE_WITHIN_S)
            for task in late:
                task.cancel()

    async def _begin(self, workflow: Workflow, *, is_stored: bool) -> None:
        if is_stored:
            await self.workflows.accept((workflow, ()))
        else:
            self.workflows.store.begin(workflow)

    async def _become_task(self, made: asyncio.Task[Any], polled: PolledClient) -> None:
        """Have the client asked as one that polls, unless its call is about to be answered with
        what the tool's server asks for."""
        if polled.is_answered:
            await asyncio.wait({made}, timeout=2 * _ANSWER_WITHIN_S)
        else:
            polled.begin()

    async def _made(
        self, workflow: Workflow, call: CallTool, origin: CallOrigin, polled: PolledClient | None
    ) -> ToolOutcome:
        try:
            made = await self._made_with_inputs(call, origin, polled)
        except asyncio.CancelledError:
            with suppress(BusError, StorageUnavailable):
                await self.publish(call_ended(workflow, call, STOPPED, self.now()))
            raise
        outcome = made.outcome
        plain = outcome.plain if isinstance(outcome, Answered) else outcome
        ended = call_ended(workflow, call, plain, self.now())
        # A workflow that was cancelled has ended already, without its call's outcome.
        if plain.status != "unknown" or await self._runs(workflow):
            self.workflows.hear_call(workflow, ended)
        if made.entry is None or made.entry.repeatable:
            self._publish_soon(ended)
        else:
            ending = _spawn(self._ends, self._keep(ended, call, made.entry, plain))
            await asyncio.wait({ending}, timeout=_ANSWER_WITHIN_S)
        return outcome

    async def _made_with_inputs(
        self, call: CallTool, origin: CallOrigin, polled: PolledClient | None
    ) -> Made:
        """Make a call; once it is a task, again with the answers of its client to what the tool's
        server asks for."""
        made = await self.calls.make_direct(call, origin)
        if polled is None or origin.side is None:
            return made
        for _ in range(_ROUNDS):
            asked = inputs_asked(made.outcome)
            if asked is None or not polled.polls():
                return made
            requests, state = asked
            try:
                given: JsonObject = {**await polled.answers(requests)}
            except (NoInput, BusError, StorageUnavailable) as error:
                return replace(made, outcome=_not_answered(requests, error))
            side = replace(origin.side, inputs=ServerInputs(given, state))
            again = await self.calls.make_direct(call, replace(origin, side=side))
            made = replace(again, entry=again.entry or made.entry)
        return replace(made, outcome=_TOO_MANY_ROUNDS)

    async def _keep(
        self, ended: CallEnded, call: CallTool, entry: Entry, outcome: ToolOutcome
    ) -> None:
        """Store the outcome in the ledger, then publish the end."""
        await self.calls.store_direct(call, entry, outcome)
        await self._publish(ended)

    def _publish_soon(self, ended: CallEnded) -> None:
        """Publish an end with those of other calls that may be repeated."""
        self._pending.append(ended)
        if len(self._pending) == 1:
            _spawn(self._ends, self._publish_pending())

    async def _publish_pending(self) -> None:
        await asyncio.sleep(_TOGETHER_S)
        pending = [*self._pending]
        self._pending.clear()
        await asyncio.gather(*(self._publish(ended) for ended in pending))

    async def _publish(self, ended: CallEnded) -> None:
        """Publish an end, however long that takes."""
        while True:
            try:
                await self.publish(ended)
            except BusError as outage:
                log.warning("the end of %s is not published yet: %s", ended.workflow_id, outage)
            else:
                return
            await asyncio.sleep(_PUBLISH_AGAIN_S)

    async def _runs(self, workflow: Workflow) -> bool:
        try:
            stored = await self.workflows.known(workflow.scope, workflow.workflow_id)
        except StorageUnavailable:
            return True
        return stored is None or stored.state == "running"


def _spawn(tasks: set[asyncio.Task[Any]], work: Coroutine[object, object, T]) -> asyncio.Task[T]:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


def _not_answered(requests: Mapping[str, JsonObject], why: Exception) -> ToolOutcome:
    named = ", ".join(sorted({str(each.get("method")) for each in requests.values()}))
    message = f"the server asks for input ({named}), and has no answer: {why}"
    ended = isinstance(why, NoInput) and why.ended
    return ToolOutcome(status="unknown" if ended else "tool_error", message=message)


def _left(answer_by: float | None) -> float | None:
    return None if answer_by is None else max(0.0, answer_by - asyncio.get_running_loop().time())
