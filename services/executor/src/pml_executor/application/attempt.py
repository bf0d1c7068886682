"""One attempt at one run: connects the program with the journal and the tools."""

import asyncio
from dataclasses import dataclass

from pydantic_core import to_json

from pml_common.binding.fit import Binding
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow, WantedCall
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import ToolEnd, ToolStart
from pml_common.telemetry import vocabulary
from pml_executor.application.pending_calls import PendingCalls
from pml_executor.application.run_dependencies import RunDependencies
from pml_executor.application.run_measures import call_span
from pml_executor.domain import events
from pml_executor.domain.capabilities import CapabilityCalls, injected
from pml_executor.domain.deadline import RunTime
from pml_executor.domain.endings import Ending, RunEnded
from pml_executor.domain.journal import Call, CallKey, RunJournal
from pml_executor.domain.layers import hold_before_layer
from pml_executor.domain.left_under_way import left_under_way
from pml_executor.domain.limits import Allowance
from pml_executor.domain.missing_parts import ending_of_return, explained
from pml_executor.domain.outcomes import (
    after_unknown,
    bounded_outcome,
    call_query,
    ended_by_call,
    mock_of,
)
from pml_executor.domain.parking import Parking, most_at_once
from pml_executor.domain.protocol import (
    Answer,
    CallMade,
    Entered,
    Failed,
    Failure,
    Left,
    Noted,
    Paused,
    Program,
    Returned,
    Threw,
)
from pml_executor.domain.refusal import refused_call
from pml_executor.ports import (
    GatewayUnreachable,
    JournalStore,
    NeedsWorker,
    Sandbox,
    SandboxBroken,
)


@dataclass
class Attempt:
    """One attempt at one run. If it `is_first`, none before it came further than the journal.

    Before a call that may change something, everything so far is stored: its start, so that it is
    made at most once, and what led to it, so that a replay comes to the same call. A call that only
    reads waits for nothing, unless the outcomes so far may come in another order when the program
    runs again from what is stored: then the program might make another call instead.
    """

    command: RunWorkflow
    deps: RunDependencies
    store: JournalStore
    journal: RunJournal
    sandbox: Sandbox
    time: RunTime
    is_first: bool

    def __post_init__(self) -> None:
        self._allowance = Allowance(self.deps.limits)
        self._calls: dict[int, Call] = {}
        self._message_ids: dict[CallKey, int] = {}
        self._failed: dict[int, ToolEnd] = {}
        self._capability_calls = CapabilityCalls(self.command, self.journal)
        self._binding = Binding(self.command.grant, self.command.args)
        self._grant_digest = self.command.grant.digest()
        self._pending = PendingCalls(self.command, self.journal, self.sandbox)
        self._under_way: set[asyncio.Task[None]] = set()
        self._order_open_until = 0
        self._is_over = False
        self._completed = False
        self._has_left = False
        self.killed = False

    async def run(self) -> Ending | tuple[WantedCall, ...] | None:
        """Run until the program has ended, or must wait for approval, and every call it made has
        ended. Return the ending, or the calls to be approved; None if nothing of it has run,
        because it cannot run in the sandbox's realm."""
        program = Program(
            code=self.command.instrumented,
            capabilities=injected(self.command.injected),
            args=self.command.args,
            seed=self.command.workflow_id.hex,
            now=int(self.journal.entries[0].ts),
            past=int(self.journal.entries[-1].ts),
        )
        async with asyncio.TaskGroup() as calls:
            await self.sandbox.run(program)
            try:
                ending = await self._handle_messages(calls)
            except RunEnded as ended:
                ending = Ending(error=ended.error)
            except Parking as parking:
                ending = parking.wanted
            except NeedsWorker:
                self._completed, ending = True, None
            finally:
                self._is_over = True
                if self._completed and not self._under_way:  # else it would run as long as they
                    self.sandbox.finish()
                else:
                    self.killed = True
                    self.sandbox.kill()
        if self._has_left:
            return ending  # what it did not wait for is not worth a person's approval
        if self._pending.wanted and (self._completed or isinstance(ending, tuple)):
            return most_at_once(self._pending.wanted)  # the gateway may have asked about more calls
        return ending

    async def _handle_messages(self, calls: asyncio.TaskGroup) -> Ending:
        while True:
            self._deliver()
            try:
                message = await self._pending.receive()
            except SandboxBroken as broken:
                return Ending(error=WorkflowError(kind=broken.kind, message=str(broken)))
            match message:
                case CallMade():
                    self._on_call(message, calls)
                case Noted():
                    self._on_notes(message)
                case Entered() | Left() | Failed():
                    self._on_capability(message)
                case Returned() | Threw() | Paused():
                    ending = self._on_end(message)
                    if ending is not None:
                        return self._ended(ending)

    def _on_end(self, message: Returned | Threw | Paused) -> Ending | None:
        """Return how the program ended; None if it has only paused. Raises Parking."""
        if isinstance(message, Returned):
            left = left_under_way(self.command, message, self._calls)
            if left is not None:
                self._has_left = True
                return Ending(error=left)
        if self._pending.wanted:
            raise Parking(self._pending.wanted)
        match message:
            case Returned():
                return ending_of_return(self.command, message, self.journal.entries)
            case Threw():
                error = self._failure(message)
                return Ending(error=explained(self.command, message, error, self.journal.entries))
            case Paused():
                return None

    def _ended(self, ending: Ending) -> Ending:
        """Mark the run as completed: the program ended by itself, and replayed the whole
        journal."""
        self.journal.complete()
        self._completed = True
        return ending

    def _on_call(self, message: CallMade, calls: asyncio.TaskGroup) -> None:
        node_id = message.node or f"dyn:{message.tool}"
        if message.id in self._calls:
            error = WorkflowError(kind="rejected", message="the program forged a call")
            raise RunEnded(error)
        size = len(to_json(message.args))
        self._allowance.call(node_id, size)
        call = self.journal.call(node_id, message.tool, message.args)
        refused = refused_call(self.command, message.tool, node_id)
        if refused is not None:
            raise RunEnded(refused)
        self._hold(node_id, call.tool, call.args)
        self._calls[message.id] = call
        self._message_ids[call.key] = message.id
        if call.ended:
            return
        why = self._mismatch(call)
        if why is not None:
            self._pending.add(call, message, why)
            return
        start = call.start
        if start is None:  # queued here, so that the journal has entries in the program's order
            parent = self._capability_calls.trace_of(message.within)
            start = events.call_started(self.command, call, parent, self.deps.now())
            self.store.note(start, size)
        making = calls.create_task(self._make(call, start, message))
        self._under_way.add(making)
        making.add_done_callback(self._under_way.discard)

    def _mismatch(self, call: Call) -> str | None:
        """Return how a call differs from what was approved, or None; a mock answers any call."""
        if call.tool in self.command.mocks:
            return None
        return self._binding.mismatch(call.made, self.journal.results)

    def _hold(self, node_id: str, tool: str, args: JsonObject) -> None:
        hold_before_layer(self.command, self.journal.marks, node_id, tool, args)

    def _on_capability(self, message: Entered | Left | Failed) -> None:
        now = self.deps.now()
        match message:
            case Entered():
                size = len(to_json(message.args))
                self._allowance.nested(message.node, size)
                entry = self._capability_calls.enter(message, now)
                called = self.command.injected[message.capability]
                self._hold(message.node, f"cap:{called.name}", message.args)
            case Left():
                size = len(to_json(message.value)) + len(to_json(message.lost))
                self._allowance.store(size)
                ending = Ending(result=message.value, notices=message.lost)
                entry = self._capability_calls.leave(message.id, ending, now)
            case Failed():
                size = 0
                ending = Ending(error=self._failure(message, message.id))
                entry = self._capability_calls.leave(message.id, ending, now)
        if entry is not None:
            self.store.note(entry, size)

    def _on_notes(self, message: Noted) -> None:
        now = self.deps.now()
        for note in message.notes:
            size = len(to_json(note))
            self._allowance.note(size)
            trace = self._capability_calls.trace_of(note.within)
            entry = events.noted(trace, self.journal, note, now)
            if entry is not None:
                self.store.note(entry, size)

    async def _make(self, call: Call, start: ToolStart, message: CallMade) -> None:
        """Make the call, once what it must follow is stored, and note its end. A call that the
        gateway wants approved was not made and has no end."""
        if self._must_wait(call):
            await self.store.append()
        mock = mock_of(self.command, start, self.journal.entries)
        with call_span(self.command, call.tool, call.node_id) as span:
            outcome = mock or await self._call_tool(call, start)
            span.set_attribute(vocabulary.OUTCOME, outcome.status)
        if outcome.status == "ask":
            self._pending.add(call, message, outcome.message or "")
            return
        outcome, size = bounded_outcome(outcome, self.deps.limits.max_message_bytes)
        self._allowance.store(size)
        ended = events.call_ended(start, outcome, self.deps.now(), mocked=mock is not None)
        self.store.note(ended, size)
        if len(self._under_way) > 1:
            self._order_open_until = len(self.journal.entries)
        self._deliver()

    def _must_wait(self, call: Call) -> bool:
        """Whether all entries so far are to be stored before the call is made."""
        if call.tool in self.command.mocks:
            return False
        stored = len(self.journal.entries) - self.store.unstored
        return call.tool not in self.command.read_only_tools or self._order_open_until > stored

    async def _call_tool(self, call: Call, start: ToolStart) -> ToolOutcome:
        outcome = await self._request_call(call, start)
        if outcome.status == "unknown" and call.tool in self.command.repeatable_tools:
            outcome = after_unknown(outcome, await self._request_call(call, start, again=True))
        if outcome.status == "unknown":
            why = outcome.message or f"{call.tool} was called and its outcome is unknown"
            raise ended_by_call("outcome_unknown", call, why)
        return outcome

    async def _request_call(
        self, call: Call, start: ToolStart, *, again: bool = False
    ) -> ToolOutcome:
        # Another executor may have requested what only reads without leaving a trace of it.
        is_new = call.start is None and (
            self.is_first or call.tool not in self.command.read_only_tools
        )
        asked = call_query(
            self.command,
            call,
            self._grant_digest,
            self.time.remaining(),
            start.ts,
            is_new=is_new,
            again=again,
        )
        try:
            return await self.deps.tools.call(asked)
        except GatewayUnreachable as error:
            if again:
                return ToolOutcome(status="unknown", message=str(error))
            raise ended_by_call("internal", call, str(error)) from error

    def _deliver(self) -> None:
        """Send the program the answers that are due, in the journal's order."""
        for end in self.journal.due():
            asked_as = self._message_ids[end.node_id or "", end.occurrence]
            message = end.error.message if end.error else ""
            if end.error is not None:
                if end.error.kind == "denied":
                    raise ended_by_call("denied", self._calls[asked_as], message)
                self._failed[asked_as] = end
            if self._is_over:
                continue
            answer = Answer(
                id=asked_as, ok=end.success, value=end.result, message=message, now=int(end.ts)
            )
            self.sandbox.answer(answer)

    def _failure(self, failure: Failure, of: int | None = None) -> WorkflowError:
        """Return the error that escaped from the program, or from call `of` of a capability."""
        end = None if failure.call is None else self._failed.get(failure.call)
        origin = None if failure.call is None or end is None else (self._calls[failure.call], end)
        return self._capability_calls.failure(failure, origin, of)
