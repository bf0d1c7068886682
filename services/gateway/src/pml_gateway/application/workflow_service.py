"""The one place where workflows are stored, published and waited for."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pml_common.bus.errors import BusError
from pml_common.contracts import ids
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.application.run_cache import RunCache
from pml_gateway.application.workflow_measures import MeasuredStep, measure_ends, measure_step
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.errors import NotFound
from pml_gateway.domain.api.given_names import Told, told_name, wanted_name
from pml_gateway.domain.api.responses import execute_response
from pml_gateway.domain.workflow.acceptance import Terms
from pml_gateway.domain.workflow.accepted_run import acceptance_of
from pml_gateway.domain.workflow.deletion import require_kept
from pml_gateway.domain.workflow.events import WorkflowEvent
from pml_gateway.domain.workflow.joining import is_joinable
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance
from pml_gateway.domain.workflow.workflow_state import Rules
from pml_gateway.ports import (
    CapabilityNames,
    LiveWorkflowStore,
    NameUnsettled,
    Notifier,
    Outgoing,
    Relay,
    Waiter,
)

log = logging.getLogger(__name__)

UNDER_WAY = ("requested", "running")
"""States in which a workflow waits for another service."""


@dataclass(frozen=True)
class WorkflowService:
    """Accepts workflows, takes their steps and waits for their ends.

    Nothing follows from a step before it is stored, by the store or the bus.
    After that the run is cached, so that its first tool call need not read the store; effects are
    published and waiting callers notified last.
    """

    store: LiveWorkflowStore
    relay: Relay
    notifier: Notifier
    runs: RunCache
    names: CapabilityNames
    terms: Terms
    rules: Rules

    def advance(self, workflow: Workflow, event: WorkflowEvent) -> Step:
        """Apply an event under this gateway's rules; pure."""
        return advance(workflow, event, self.rules)

    async def accept(self, first: Step, join_at: datetime | None = None) -> Workflow:
        """Accept a new workflow after its first step; where its key is taken, return the workflow
        that has it, and with `join_at`, where the same call has a workflow that may be joined at
        this time, that one. Where its run begins at once, the bus accepts it, if it can; else the
        store does, and what follows is published. Raises StorageUnavailable."""
        workflow, effects = first
        if join_at is not None and workflow.call_digest is not None:
            earlier = await self.joinable(workflow.scope, workflow.call_digest, join_at)
            if earlier is not None:
                return earlier
        acceptance = acceptance_of(workflow, effects)
        if acceptance is not None:
            effects = (acceptance,)  # should the bus have it nevertheless, it has it once
            try:
                known = await self.store.accept_run(workflow, acceptance)
            except BusError as error:
                log.warning("%s is stored first: %s", workflow.workflow_id, error)
            else:
                if known is None:
                    self.runs.put(workflow)
                return known or workflow
        stored = await self.store.accept(workflow, effects, join_at)
        if stored is not None:
            return stored
        measure_step(None, workflow)
        await self._follow_up(workflow, effects)
        return workflow

    async def step(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Workflow | None:
        """Take a step that no message of the bus causes, and return the workflow after it; None
        where there is no such workflow. Raises StorageUnavailable, and what `step` raises."""
        measured = MeasuredStep(step)
        taken = await self.store.change(scope, workflow_id, measured)
        if taken is None:
            return None
        measured.stored()
        await self._follow_up(*taken)
        return taken[0]

    async def step_once(
        self,
        cause: ExecutionAnalyzed | AnalysisRejected | WorkflowParked,
        consumer: str,
        step: Callable[[Workflow], Step],
    ) -> Sequence[Message]:
        """Take the step that a message causes, and return its effects: the bus publishes them
        before it acknowledges the message. A redelivery changes nothing and returns the same."""
        measured = MeasuredStep(step)
        taken = await self.store.step_once(cause, consumer, cause.workflow_id, measured)
        if taken is None:
            log.warning("%s: there is no workflow %s", cause.scope, cause.workflow_id)
            return ()
        if taken.workflow is not None:
            measured.stored()
            self.runs.put(taken.workflow)
            self.notifier.notify(taken.workflow)
            await self._settle_name(taken.workflow)
        return taken.effects

    async def store_accepted(self, accepted: Sequence[WorkflowAccepted]) -> None:
        """Store workflows that the bus accepted; a repetition changes nothing. Raises
        StorageUnavailable."""
        await self.store.add_accepted(accepted)

    async def hear_end(self, run: RunFinished) -> None:
        """Answer this process's callers at the end of a run that is stored in its journal only."""
        await self.runs.on_end(run)
        if not self.notifier.is_awaited(run.scope, str(run.workflow_id)):
            return
        before = self.store.latest(run.scope, run.workflow_id)
        if before is None or before.state != "running":
            before = await self.store.get(run.scope, run.workflow_id)
        if before is not None:
            self.notifier.notify(self.store.hear(before, run))

    def hear_call(self, workflow: Workflow, ended: CallEnded) -> None:
        """Answer this process's callers at the end of a direct call that it made."""
        self.notifier.notify(self.store.hear(workflow, ended.run))

    async def end_calls(self, ended: Sequence[CallEnded]) -> None:
        """Store the workflows of direct calls, with their ends; a repetition changes nothing.
        Raises StorageUnavailable."""
        workflows = await self.store.end_calls(ended)
        measure_ends(workflows)
        for workflow in workflows:
            self.notifier.notify(workflow)

    async def end(self, runs: Sequence[RunFinished]) -> None:
        """Store the ends of runs, together; a repetition changes nothing. Raises
        StorageUnavailable."""
        ended = await self.store.end(runs)
        measure_ends(ended)
        for workflow in ended:
            self.runs.put(workflow)
            self.notifier.notify(workflow)
        await asyncio.gather(*(self._settle_name(workflow) for workflow in ended))
        if len(ended) < len(runs):
            known = {(each.scope, each.workflow_id) for each in ended}
            missing = [run for run in runs if (run.scope, run.workflow_id) not in known]
            log.warning("ends of runs of no workflow: %s", [str(r.workflow_id) for r in missing])

    async def _follow_up(self, after: Workflow, effects: Sequence[Message]) -> None:
        self.runs.put(after)
        await self.relay.publish([Outgoing(each, after.traceparent) for each in effects])
        self.notifier.notify(after)
        await self._settle_name(after)

    async def is_held(self, workflow: Workflow) -> bool:
        """Whether the bus still holds the command of a workflow that runs; taken as true while that
        is not known."""
        if workflow.state != "running":
            return False
        try:
            return await self.store.is_held(workflow.scope, workflow.workflow_id)
        except BusError as error:
            log.info("whether %s is to run again is not known: %s", workflow.workflow_id, error)
            return True

    async def known(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """Return a stored workflow; None where there is none. Raises StorageUnavailable."""
        return await self.store.get(scope, workflow_id)

    async def id_of_key(self, scope: Scope, principal: str, key: str) -> UUID:
        """Return the id of the workflow that a principal's key stands for, also of one that has its
        id from before keys were a principal's own. Raises StorageUnavailable."""
        present = ids.workflow_id(scope, principal, key)
        try:
            former = await self.known(scope, ids.former_workflow_id(scope, key))
        except StorageUnavailable:
            if await self.known(scope, present) is None:  # memory and the bus may know it
                raise
            return present
        if former is not None and former.requested.principal == principal:
            return former.workflow_id
        return present

    async def read(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """Return a stored workflow to a caller: where it has succeeded, its name resolves. Raises
        Gone, StorageUnavailable."""
        found = await self.known(scope, workflow_id)
        if found is not None:
            require_kept(found)
            await self._settle_name(found)
        return found

    async def joinable(self, scope: Scope, call_digest: str, at: datetime) -> Workflow | None:
        """Return the workflow that a call joins, if any. Raises StorageUnavailable."""
        found = await self.store.joinable(scope, call_digest)
        return found if found is not None and is_joinable(found, at) else None

    async def deliver(self, workflow: Workflow, principal: str) -> None:
        """Note that the principal got this end of a workflow, if it is the caller whose calls may
        join it. An outage is no reason to keep the answer back."""
        is_caller = principal == workflow.requested.principal
        if workflow.finished_at is None or workflow.approval is None or not is_caller:
            return
        try:
            await self.store.deliver(workflow.scope, workflow.workflow_id)
        except StorageUnavailable as outage:
            log.warning("%s may be joined once more: %s", workflow.workflow_id, outage)

    def subscribe(self, scope: Scope, workflow_id: UUID) -> AbstractContextManager[Waiter]:
        """Receive notifications of a workflow, from before it is accepted or read."""
        return self.notifier.subscribe(scope, workflow_id)

    def is_awaited(self, scope: Scope, workflow_id: UUID) -> bool:
        """Whether a caller of this process waits for a workflow."""
        return self.notifier.is_awaited(scope, str(workflow_id))

    async def wait(
        self,
        workflow: Workflow,
        waiter: Waiter,
        deadline: float,
        *,
        asked: UUID | None = None,
    ) -> Workflow:
        """Wait until a workflow has ended or waits for an approval other than `asked`, until
        `deadline` (event loop time) at most, or until the gateway stops; return its latest known
        state."""
        while _goes_on(workflow, asked) and (left := deadline - _now()) > 0:
            notified = await waiter.wait(min(left, self.terms.poll_every_s))
            workflow = notified or await self._latest(workflow)
            if waiter.over:
                break
        return workflow

    async def wait_for_decision(self, scope: Scope, workflow_id: UUID, approval_id: UUID) -> None:
        """Wait until a workflow does not wait for this approval any more, or it has expired, or the
        gateway stops. Raises StorageUnavailable."""
        with self.subscribe(scope, workflow_id) as waiter:
            workflow = await self.known(scope, workflow_id)
            while workflow is not None and not waiter.over:
                approval = workflow.approval
                if approval is None or approval.approval_id != approval_id or approval.outcome:
                    return
                workflow = await waiter.wait(self.terms.poll_every_s) or await self._latest(
                    workflow
                )

    async def wait_for_result(
        self, scope: Scope, workflow_id: UUID, within_s: float
    ) -> Workflow | None:
        """Wait until a workflow has ended, through the approval that it waits for; return its
        latest known state, None where there is no such workflow. Raises Gone,
        StorageUnavailable."""
        with self.subscribe(scope, workflow_id) as waiter:
            workflow = await self.read(scope, workflow_id)
            if workflow is None:
                return None
            asked = workflow.approval.approval_id if workflow.approval else None
            return await self.wait(workflow, waiter, _now() + within_s, asked=asked)

    async def wait_for_end(self, workflow: Workflow) -> Workflow:
        """Wait for a stored workflow for as long as the caller of its execution would."""
        with self.subscribe(workflow.scope, workflow.workflow_id) as waiter:
            deadline = _now() + workflow.timeout_s + self.terms.answer_margin_s
            return await self.wait(await self._latest(workflow), waiter, deadline)

    async def response(self, workflow: Workflow) -> ExecuteResponse:
        """Build the response for the workflow's current state. Raises Gone."""
        require_kept(workflow)
        analysis = workflow.analysis
        if analysis is None:
            return execute_response(workflow, None)
        name, notices = await self._name(workflow, analysis)
        return execute_response(workflow, name).with_notices(*notices)

    async def _name(self, workflow: Workflow, analysis: ExecutionAnalyzed) -> Told:
        """Return the name by which the program can be called, and what to tell of one that it was
        to get."""
        try:
            given = await self._settled_name(workflow)
        except NameUnsettled as error:
            log.warning("the name %s is settled later: %s", error.name, error)
            if wanted_name(workflow) is not None:
                return told_name(workflow, None)
            given = None
        known = analysis.capability.capability_id
        return told_name(workflow, given or await self.names.name_of(workflow.scope, known))

    async def _settle_name(self, workflow: Workflow) -> None:
        """Have the name of a workflow settled, now or by the registry later."""
        try:
            await self._settled_name(workflow)
        except NameUnsettled as error:
            log.warning("the name %s is settled later: %s", error.name, error)

    async def _settled_name(self, workflow: Workflow) -> str | None:
        """Have the name that was reserved for a workflow given or released, if it has ended; return
        it if it is given now. It is given before a caller hears of the success, so that it resolves
        from then on. Raises NameUnsettled."""
        requested, analysis = workflow.requested, workflow.analysis
        if requested.name is None or requested.dry_run is not None:
            return None
        if analysis is None or workflow.finished_at is None:
            return None
        return await self.names.settle(analysis, succeeded=workflow.proves_its_program)

    async def _latest(self, workflow: Workflow) -> Workflow:
        try:
            stored = await self.store.get(workflow.scope, workflow.workflow_id)
        except StorageUnavailable:
            return workflow  # it is accepted: its caller waits on, or is answered `running`
        return stored or workflow


def _goes_on(workflow: Workflow, asked: UUID | None) -> bool:
    """Whether a workflow is under way, or waits for this approval."""
    approval = workflow.approval
    if workflow.state != "awaiting_approval" or approval is None:
        return workflow.state in UNDER_WAY
    return approval.approval_id == asked


def no_such_workflow(scope: Scope, workflow_id: UUID) -> NotFound:
    """Build the error for a workflow that is not in the caller's scope."""
    return NotFound(f"no workflow {workflow_id} in {scope}")


def _now() -> float:
    return asyncio.get_running_loop().time()
