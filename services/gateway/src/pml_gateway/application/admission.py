"""Bound on the executions that a gateway has in flight, and on those that wait for a slot.

A waiting execution is not accepted yet: it exists only in memory, with its caller, and nothing of
it is stored or published before its turn. So a gateway that dies loses none, and a new one starts
with empty counts.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from opentelemetry import trace

from pml_common.telemetry import metrics, vocabulary
from pml_common.telemetry.instruments import Distribution, Sum
from pml_common.telemetry.spans import spanning
from pml_gateway.application.workflow_service import UNDER_WAY
from pml_gateway.domain.api.errors import Busy
from pml_gateway.domain.workflow.turns import Bounds, Party, Turns
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import WorkflowStore

_waiting = Sum(metrics.EXECUTIONS_WAITING)
_refused = Sum(metrics.EXECUTIONS_REFUSED)
_wait = Distribution(metrics.EXECUTIONS_WAIT)
_tracer = trace.get_tracer(__name__)

_RECENT = 0.2
"""Weight of the last execution in the average time for which a slot is held."""

RELEASE_EVERY_S = 5.0
"""Interval of reading the workflows in flight for which no caller waits any more."""


@dataclass
class Admitted:
    """One caller's share in an execution in flight; the caller sets `workflow` to the latest state
    that it has seen. None: nothing was accepted."""

    workflow: Workflow | None = None


@dataclass
class _Ticket:
    """An execution that waits or is in flight, with the number of its callers. In flight without a
    caller, it stays until the store shows its end. Once `decided`, it may begin or is `refused`."""

    party: Party
    execution: UUID
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    refused: Busy | None = None
    begun_at: float = 0.0
    callers: int = 0


class Admission:
    """Admits executions within bounds, fairly between principals.

    An execution is in flight from its turn until it has ended or waits for approval.
    """

    def __init__(self, bounds: Bounds, store: WorkflowStore) -> None:
        self._turns = Turns(bounds)
        self._store = store
        self._tickets: dict[UUID, _Ticket] = {}
        self._hold_s = 1.0
        self._closed = False

    @property
    def waiting(self) -> int:
        """Number of waiting executions."""
        return self._turns.waiting

    @property
    def in_flight(self) -> int:
        """Number of executions that have begun."""
        return len(self._tickets) - self.waiting

    @asynccontextmanager
    async def turn(
        self, party: Party, workflow_id: UUID, within_s: float, *, is_new: bool
    ) -> AsyncGenerator[Admitted]:
        """Enter when the execution may begin: at once where a slot is free or its workflow is
        stored. `is_new`: no other request can have its id. Raises Busy where too many wait or its
        turn does not come within `within_s`, and StorageUnavailable."""
        admitted, ticket = Admitted(), await self._ticket(party, workflow_id, is_new=is_new)
        if ticket is None:
            yield admitted
            return
        ticket.callers += 1
        try:
            if not ticket.decided.is_set():
                await self._wait(ticket, within_s)
            yield admitted
        finally:
            ticket.callers -= 1
            self._leave(ticket, admitted.workflow)

    async def release_ended(self) -> None:
        """Free the slots of executions without a caller that have ended. Raises
        StorageUnavailable."""
        for ticket in [each for each in self._tickets.values() if each.callers == 0]:
            workflow = await self._store.get(ticket.party.scope, ticket.execution)
            self._leave(ticket, workflow)

    def close(self) -> None:
        """Let every execution begin: those that wait are accepted before this process ends."""
        self._closed = True
        for ticket in self._tickets.values():
            if not ticket.decided.is_set():
                self._begin(ticket)

    async def _ticket(self, party: Party, workflow_id: UUID, *, is_new: bool) -> _Ticket | None:
        """Return the ticket of an execution, a new one where it has none; None where it needs
        none."""
        if not is_new and workflow_id not in self._tickets and not self._turns.is_free:
            known = await self._store.get(party.scope, workflow_id)
            if known is not None:
                return None
        if self._closed or workflow_id in self._tickets:
            return self._tickets.get(workflow_id)
        self._make_room(party)
        ticket = self._tickets[workflow_id] = _Ticket(party, workflow_id)
        if self._turns.add(party, workflow_id):
            self._begin(ticket)
        return ticket

    def _make_room(self, party: Party) -> None:
        try:
            removed = self._turns.make_room(party, self._hold_s)
        except Busy:
            _count_refused(party)
            raise
        if removed is not None:
            ticket = self._tickets.pop(removed)
            ticket.refused = self._turns.busy(ticket.party.scope, self._hold_s)
            ticket.decided.set()

    async def _wait(self, ticket: _Ticket, within_s: float) -> None:
        _waiting.add(1)
        began = _now()
        attributes = {vocabulary.WORKFLOW_ID: str(ticket.execution)}
        with spanning(_tracer, "wait for a turn", attributes) as span:
            try:
                async with asyncio.timeout(within_s):
                    await ticket.decided.wait()
                refused = ticket.refused
            except TimeoutError:
                refused = self._turns.busy(ticket.party.scope, self._hold_s)
            finally:
                _waiting.add(-1)
            outcome = "admitted" if refused is None else "refused"
            span.set_attribute(vocabulary.OUTCOME, outcome)
        _wait.record(_now() - began, outcome)
        if refused is not None:
            _count_refused(ticket.party)
            raise refused

    def _leave(self, ticket: _Ticket, workflow: Workflow | None) -> None:
        """Free the slot of an execution that has ended or was never accepted, and begin the next
        ones."""
        if self._tickets.get(ticket.execution) is not ticket:
            return
        goes_on = workflow.state in UNDER_WAY if workflow else ticket.callers > 0
        if goes_on:
            return
        if ticket.decided.is_set():
            held_s = _now() - ticket.begun_at
            self._hold_s += _RECENT * (held_s - self._hold_s)
        del self._tickets[ticket.execution]
        self._turns.leave(ticket.party, ticket.execution)
        while (following := self._turns.next()) is not None:
            self._begin(self._tickets[following])

    def _begin(self, ticket: _Ticket) -> None:
        ticket.begun_at = _now()
        ticket.decided.set()


def _count_refused(party: Party) -> None:
    _refused.add(1, str(party.scope))


def _now() -> float:
    return asyncio.get_running_loop().time()
