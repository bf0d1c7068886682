"""Execution of a program: its turn, its workflow, and the wait for its end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID, uuid4

from opentelemetry import propagate

from pml_common.contracts import ids
from pml_common.contracts.decision import Policy
from pml_common.contracts.scope import Scope
from pml_common.telemetry.spans import note_workflow
from pml_gateway.application.admission import Admission
from pml_gateway.application.callers_elsewhere import CallersElsewhere
from pml_gateway.application.cancel import Withdrawals
from pml_gateway.application.first_step import FirstStep
from pml_gateway.application.progress import ProgressReports
from pml_gateway.application.waiting_callers import WaitingCallers
from pml_gateway.application.workflow_service import WorkflowService, no_such_workflow
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.workflow.acceptance import IncomingRequest, Program, Terms, accepted
from pml_gateway.domain.workflow.deletion import require_kept
from pml_gateway.domain.workflow.joining import may_join
from pml_gateway.domain.workflow.turns import Party
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.domain.workflow.workflow_state import Rules
from pml_gateway.ports import Caller, CallerSide


class NotAtOnce(Exception):
    """A program was not accepted, as it would not run at once: a person must approve it or may be
    asked later (`needs_approval`), or it cannot be decided on or is refused (`unavailable`)."""

    def __init__(self, outcome: Literal["needs_approval", "unavailable"], why: str) -> None:
        super().__init__(why)
        self.outcome: Literal["needs_approval", "unavailable"] = outcome


class Guessed(NamedTuple):
    """The request of a caller who named no program, as it was sent, and what to do before the
    workflow of the guess is accepted."""

    as_sent: ExecuteRequest
    begin: Callable[[Workflow], Awaitable[None]]


class Executed(NamedTuple):
    """The workflow of an execution; `joined`: an earlier call began it."""

    workflow: Workflow
    joined: bool = False


@dataclass(frozen=True)
class ProgramExecution:
    """Executes programs as workflows. `policy_of` returns a scope's present policy;
    `require_ready` raises BusUnavailable while NATS does not answer and Unavailable while a disk
    is almost full, so that nothing is accepted which no service would handle."""

    workflows: WorkflowService
    first_step: FirstStep
    admission: Admission
    policy_of: Callable[[Scope], Policy]
    terms: Terms
    rules: Rules
    now: Callable[[], datetime]
    require_ready: Callable[[], Awaitable[None]]
    progress: ProgressReports
    withdrawals: Withdrawals
    elsewhere: CallersElsewhere
    callers: WaitingCallers = field(default_factory=WaitingCallers)

    async def execute(
        self,
        scope: Scope,
        principal: str,
        request: ExecuteRequest,
        side: CallerSide,
        program: Program,
        *,
        guessed: Guessed | None = None,
    ) -> Executed:
        """Accept a program once its turn comes, or join the workflow of the same call, and wait for
        its end or its approval, for as long as it may run and a margin, or as its caller waits.
        A guess runs at once or not at all. Raises Busy, Conflict, Gone, NotAtOnce, errors of the
        bus and of storage."""
        await self.require_ready()
        key = request.idempotency_key or uuid4().hex
        workflow_id = ids.workflow_id(scope, principal, key)
        if request.idempotency_key is not None:
            workflow_id = await self.workflows.id_of_key(scope, principal, key)
        asked = IncomingRequest(
            scope=scope,
            principal=principal,
            request=request,
            program=program,
            workflow_id=workflow_id,
            idempotency_key=key,
            at=self.now(),
            policy=self.policy_of(scope),
            traceparent=traceparent(),
            as_sent=None if guessed is None else guessed.as_sent,
        )
        deadline = self._deadline(request.timeout, side)
        seen = [workflow_id]
        try:
            executed = await self._begun(asked, side, deadline, guessed)
            if executed.joined:
                seen.append(executed.workflow.workflow_id)
                executed = await self._until(executed.workflow, side, deadline)
        except asyncio.CancelledError:
            if side.withdrawn():
                self.withdrawals.withdraw(Caller(scope, principal), seen[-1])
            raise
        await self._deliver(executed.workflow, side)
        return executed

    async def resume(self, caller: Caller, workflow_id: UUID, side: CallerSide) -> Executed:
        """Wait for a workflow as the call that began it would. Raises NotFound and errors of
        storage."""
        known = await self.workflows.known(caller.scope, workflow_id)
        if known is None:
            raise no_such_workflow(caller.scope, workflow_id)
        try:
            waited = await self._until(known, side, self._deadline(known.timeout_s, side))
        except asyncio.CancelledError:
            if side.withdrawn():
                self.withdrawals.withdraw(caller, workflow_id)
            raise
        await self._deliver(waited.workflow, side)
        return Executed(waited.workflow)

    def _deadline(self, timeout_s: float | None, side: CallerSide) -> float:
        """Return until when a caller waits, in event loop time."""
        runs_for = self.terms.default_timeout_s if timeout_s is None else timeout_s
        latest = _now() + runs_for + self.terms.answer_margin_s
        return latest if side.answer_by is None else min(side.answer_by, latest)

    async def _begun(
        self, asked: IncomingRequest, side: CallerSide, deadline: float, guessed: Guessed | None
    ) -> Executed:
        """Accept a program, and wait for its workflow; or return the workflow that it joins."""
        scope, is_new = asked.scope, asked.request.idempotency_key is None
        workflow_id = asked.workflow_id
        party = Party(scope, asked.principal)
        with (
            self.workflows.subscribe(scope, workflow_id) as waiter,
            self.callers.waiting(scope, workflow_id, side),
        ):
            within_s = max(0.0, deadline - _now())
            turn = self.admission.turn(party, workflow_id, within_s, is_new=is_new)
            async with self.progress.of(side, scope, workflow_id) as reached, turn as admitted:
                new = accepted(self._current(asked), self.terms, self.rules)
                executed = await self._stored(new, asked, guessed, is_new=is_new)
                note_workflow(executed.workflow.workflow_id)
                if executed.joined:
                    return executed
                admitted.workflow = stored = executed.workflow
                _require_same_request(stored, new)
                await reached.begin(stored)
                admitted.workflow = latest = await self.workflows.wait(stored, waiter, deadline)
                _require_same_request(latest, new)
                return Executed(latest)

    def _current(self, asked: IncomingRequest) -> IncomingRequest:
        """Return a request as of its turn."""
        return replace(asked, at=self.now(), policy=self.policy_of(asked.scope))

    async def response(self, executed: Executed) -> ExecuteResponse:
        """Build the response for an execution's current state."""
        answer = await self.workflows.response(executed.workflow)
        return answer.model_copy(update={"joined": True}) if executed.joined else answer

    async def _stored(
        self, new: Workflow, asked: IncomingRequest, guessed: Guessed | None, *, is_new: bool
    ) -> Executed:
        """Return the workflow that has the key, or that the same call began before, or store the
        new one after its first step."""
        known = None if is_new else await self.workflows.known(new.scope, new.workflow_id)
        if known is not None:
            await self.elsewhere.join(new.scope, new.workflow_id)
            return Executed(known)
        step = await self.first_step.of(new)
        if guessed is not None:
            _require_at_once(step[0])
            await guessed.begin(step[0])
        if asked.request.fresh or not may_join(step[0]):
            return Executed(await self.workflows.accept(step))
        stored = await self.workflows.accept(step, join_at=self.now())
        return Executed(stored, joined=stored.workflow_id != new.workflow_id)

    async def _until(self, joined: Workflow, side: CallerSide, deadline: float) -> Executed:
        """Wait for a workflow that another call began."""
        scope, workflow_id = joined.scope, joined.workflow_id
        with (
            self.workflows.subscribe(scope, workflow_id) as waiter,
            self.callers.waiting(scope, workflow_id, side),
        ):
            await self.elsewhere.join(scope, workflow_id)
            async with self.progress.of(side, scope, workflow_id) as reached:
                known = await self.workflows.known(scope, workflow_id) or joined
                await reached.begin(known)
                return Executed(await self.workflows.wait(known, waiter, deadline), joined=True)

    async def _deliver(self, workflow: Workflow, side: CallerSide) -> None:
        if workflow.approval is None or workflow.finished_at is None:
            return
        if not await side.is_gone():
            await self.workflows.deliver(workflow, workflow.requested.principal)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _require_at_once(after_first_step: Workflow) -> None:
    """Raise NotAtOnce for a workflow that does not run without a person, to its end."""
    analysis = after_first_step.analysis
    match after_first_step.state:
        case "running" if analysis is not None and not analysis.dynamic_calls:
            return
        case "running":
            why = "some of its calls are known only in the run, and may need a person's approval."
        case "awaiting_approval":
            reasons = " ".join(analysis.decision.reasons) if analysis is not None else ""
            why = f"a person must approve it first. {reasons}".rstrip()
        case _:
            error = after_first_step.error
            raise NotAtOnce("unavailable", error.message if error else "it cannot be analysed now")
    raise NotAtOnce("needs_approval", f"{why} Call it by name to ask for that.")


def _require_same_request(stored: Workflow, new: Workflow) -> None:
    require_kept(stored)
    if stored.request_hash != new.request_hash:
        raise Conflict(
            f"idempotency_key {new.idempotency_key} stands for another request; use another key"
        )


def traceparent() -> str | None:
    """Return the context of the current trace."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent")
