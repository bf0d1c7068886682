"""Tool calls of runs: made at most once if not repeatable, the outcome stored before its return."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from opentelemetry import trace
from opentelemetry.trace import SpanKind
from pydantic import JsonValue
from pydantic_core import to_json

from pml_common.bus.errors import QueryFailed
from pml_common.contracts import ids
from pml_common.contracts.decision import Policy
from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_common.telemetry import metrics, vocabulary
from pml_common.telemetry.instruments import OTHER, Distribution, Sum
from pml_common.telemetry.spans import spanning
from pml_gateway.application.calls_under_way import CallsUnderWay, UnderWay
from pml_gateway.application.run_cache import RunBeingCancelled, RunCache, call_keys
from pml_gateway.application.server_listings import never_listed
from pml_gateway.application.waiting_callers import WaitingCallers
from pml_gateway.domain.tool_calls.call_ruling import (
    Listed,
    Ruling,
    Run,
    direct_ruling,
    ruling,
    with_results,
)
from pml_gateway.domain.tool_calls.ledger import (
    Answer,
    CallAgain,
    Entry,
    Wait,
    fingerprint,
    is_certainly_new,
    is_discarded,
    judge,
)
from pml_gateway.domain.tool_calls.repeatable import (
    NotSent,
    after_unknown,
    only_reads,
    outcome_of_attempt,
    repeatable,
)
from pml_gateway.domain.tool_calls.tool_result import Answered
from pml_gateway.domain.workflow.direct_call import ledger_entry
from pml_gateway.ports import Caller, CallerSide, CallLedger, CallOrigin, KnownTools

log = logging.getLogger(__name__)
_tracer = trace.get_tracer(__name__)
_duration = Distribution(metrics.TOOL_CALLS)
_answered = Sum(metrics.CALLS_ANSWERED)
_GRACE = timedelta(seconds=10)
"""Time after its timeout for which a call may still be storing its outcome."""

_ANSWER_WITHIN_S = 4.0
"""Time after its timeout within which a call is answered, even if its outcome is not stored yet."""

_STORE_AGAIN_S = 0.5
_NOT_RUNNING = "its workflow is not running, or not under the grant that the call names"

_MAX_OCCURRENCES = 1000
"""Of a node: as many calls as a run may make."""


@dataclass(frozen=True)
class Made:
    """A direct call's outcome, and the entry under which it is to be stored; None where nothing was
    called."""

    outcome: ToolOutcome
    entry: Entry | None = None


class ToolCalls:
    """Makes the calls of runs; their owner in the ledger is `instance`, the id of this process."""

    def __init__(
        self,
        tools: KnownTools,
        ledger: CallLedger,
        instance: UUID,
        runs: RunCache,
        policy_of: Callable[[Scope], Policy],
        now: Callable[[], datetime],
        callers: WaitingCallers | None = None,
    ) -> None:
        self._tools = tools
        self._callers = callers or WaitingCallers()
        self._ledger = ledger
        self._instance = instance
        self._runs = runs
        self._policy_of = policy_of
        self._now = now
        self._in_progress: dict[tuple[Scope, UUID, str], asyncio.Task[ToolOutcome]] = {}
        self.under_way = CallsUnderWay()

    async def on_call_tool(self, call: CallTool) -> ToolOutcome:
        """Make the call, join the one in progress, or return its stored outcome. Raises QueryFailed
        `unavailable` while the outcome cannot be known: request it again under the same key."""
        run = await self._run_of(call)
        if run is None:
            return ToolOutcome(status="refused", message=_NOT_RUNNING)
        mark = fingerprint(call)
        key = call.scope, call.idempotency_key, mark
        current = self._in_progress.get(key)
        if current is not None:
            _answered.add(1, "joined")
        else:
            current = asyncio.create_task(self._make(call, mark, run), name=f"call {call.tool}")
            self._in_progress[key] = current
            current.add_done_callback(lambda task: self._finished(key, task))
        # A cancelled request must not cancel the call: the next request joins it.
        done, _ = await asyncio.wait({current}, timeout=call.timeout_s + _ANSWER_WITHIN_S)
        if not done:
            message = f"{call.tool} was called; its outcome is not stored yet"
            raise QueryFailed("unavailable", message)
        return current.result()

    async def make_direct(self, call: CallTool, origin: CallOrigin) -> Made:
        """Make the call of a caller whom the policy allows it; its beginning is stored first where
        it must not be made again."""
        deadline = asyncio.get_running_loop().time() + call.timeout_s
        why_not = direct_ruling(call, self._listed(call), self._policy_of(call.scope))
        if why_not is not None:
            return Made(ToolOutcome(status=why_not.status, message=why_not.why))
        entry = self._entry(call, fingerprint(call))
        with self.under_way.entered(call) as under_way:
            if not entry.repeatable:
                try:
                    await self._ledger.begin(call, entry)
                except StorageUnavailable as outage:
                    message = f"nothing was called: {outage}"
                    return Made(NotSent(status="tool_error", message=message))
            return Made(await self._call_until_run_ends(call, deadline, under_way, origin), entry)

    async def store_direct(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> None:
        """Store the outcome of a direct call, however long that takes."""
        await self._store(call, entry, outcome)

    async def store_ended(self, ended: Sequence[CallEnded]) -> None:
        """Store the calls that ended, unless they are. Raises StorageUnavailable."""
        found = [ledger_entry(each, self._instance) for each in ended]
        made = {each[0].idempotency_key: each for each in found if each is not None}
        if made:
            await self._ledger.add([made[key] for key in sorted(made)])

    async def close(self) -> None:
        """Cancel all calls in progress; a repeated request finds them in the ledger."""
        tasks = list(self._in_progress.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finished(self, key: tuple[Scope, UUID, str], task: asyncio.Task[ToolOutcome]) -> None:
        del self._in_progress[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("%s: %s", task.get_name(), error)

    async def _run_of(self, call: CallTool) -> Run | None:
        try:
            return await self._runs.find(call)
        except StorageUnavailable as outage:
            raise QueryFailed("unavailable", f"nothing was called: {outage}") from outage
        except RunBeingCancelled as reason:
            # Not refused: the run would end as denied, which is not why it ends.
            raise QueryFailed("unavailable", f"the run is being ended: {reason}") from reason

    async def _make(self, call: CallTool, mark: str, run: Run) -> ToolOutcome:
        deadline = asyncio.get_running_loop().time() + call.timeout_s
        if await self._waited_for_listing(call):
            again = await self._run_of(call)  # it may have ended meanwhile
            if again is None:
                return ToolOutcome(status="refused", message=_NOT_RUNNING)
            run = again
        entry = self._entry(call, mark)
        # Entered before the ledger is asked: the run may end meanwhile.
        with self.under_way.entered(call) as under_way:
            try:
                outcome = await self._begin(call, entry, run)
                if isinstance(outcome, Entry):
                    _answered.add(1, "made")
                    side = self._callers.of(call.scope, call.workflow_id)
                    origin = _origin(call, run, side)
                    made = await self._call_until_run_ends(call, deadline, under_way, origin)
                    plain = made.plain if isinstance(made, Answered) else made
                    outcome = await self._store(call, outcome, plain)
            except StorageUnavailable as outage:
                raise QueryFailed("unavailable", f"nothing was called: {outage}") from outage
        if outcome.status == "ok" and run.grant.bound:
            run.keep(call.node_id, outcome.result, len(to_json(outcome.result)))
        return outcome

    async def _ruling(self, call: CallTool, run: Run) -> Ruling | None:
        """Return why the run's grant and the policy do not allow the call, or None. Results that
        this process has not cached are read from the ledger."""
        needed = set[str]()

        def cached(node_id: str) -> Sequence[JsonValue]:
            needed.add(node_id)
            return run.results.get(node_id, ())

        found = ruling(run, call, self._listed(call), self._policy_of(call.scope), cached)
        if found is None or not needed:
            return found
        keys = call_keys(call, needed, _MAX_OCCURRENCES)
        results = await self._ledger.results(call.scope, list(keys))
        more: dict[str, list[JsonValue]] = {}
        for key, result in results.items():
            more.setdefault(keys[key], []).append(result)
        present = self._policy_of(call.scope)
        return ruling(run, call, self._listed(call), present, with_results(run, more))

    def _listed(self, call: CallTool) -> Listed:
        tool, withheld = self._tools.find(call.tool), None
        if tool is None:
            withheld = self._tools.withheld(call.tool)
        return Listed(tool, self._tools.hash_of(call.tool), withheld)

    async def _call_until_run_ends(
        self, call: CallTool, deadline: float, under_way: UnderWay, origin: CallOrigin
    ) -> ToolOutcome:
        """Return the call's outcome; `unknown` where its run ends before. Not made if its run has
        ended already."""
        if under_way.ended:
            return ToolOutcome(status="refused", message=_NOT_RUNNING)
        try:
            async with asyncio.timeout(None) as under_way.limit:
                return await self._call(call, deadline, origin)
        except TimeoutError:
            if not under_way.ended:
                raise
        finally:
            under_way.limit = None
        message = f"the run ended while {call.tool} was being called; the call was cancelled"
        return ToolOutcome(status="unknown", message=message)

    async def _begin(self, call: CallTool, entry: Entry, run: Run) -> ToolOutcome | Entry:
        """Return the outcome where the call is not to be made, else the entry under which its
        outcome is stored. The beginning of a call is stored only where it must not be made again.
        """
        absent = self._absent(call)
        why_not = await self._ruling(call, run)
        if why_not is None and call.attempt == "again":
            why_not = await self._why_not_again(call, entry)
        again = why_not is None and entry.repeatable
        if again and is_certainly_new(call, self._now()):
            return entry
        only_look = again or why_not is not None
        known = await (self._ledger.find(call) if only_look else self._ledger.begin(call, entry))
        only_read = known is not None and only_reads(self._tools.find(known.tool))
        if known is not None and is_discarded(known, call, only_read=only_read):
            entry = replace(entry, replaces=known.fingerprint)
            known = None if only_look else await self._ledger.begin(call, entry)
        if known is None and absent is not None and why_not is not None:
            return absent
        if known is not None:
            return await self._judge(call, known, entry, again=again)
        return entry if why_not is None else ToolOutcome(status=why_not.status, message=why_not.why)

    async def _why_not_again(self, call: CallTool, entry: Entry) -> Ruling | None:
        """Return why a call is not made a second time, or None: its tool does not allow that, or
        the outcome of the first is known."""
        if not entry.repeatable:
            return Ruling("refused", f"{call.tool} may not be called again")
        first = await self._ledger.find(call.model_copy(update={"attempt": "first"}))
        if first is None or first.outcome is None or first.outcome.status == "unknown":
            return None
        return Ruling("refused", f"the outcome of the first call of {call.tool} is known")

    async def _waited_for_listing(self, call: CallTool) -> bool:
        """Wait, within the call's time, for the server of an unlisted tool that has not listed its
        tools since this process began; return whether that was needed."""
        if self._tools.find(call.tool) is not None or not never_listed(self._tools, call.tool):
            return False
        await self._tools.reach(call.tool.partition(":")[0], call.timeout_s)
        return True

    def _absent(self, call: CallTool) -> ToolOutcome | None:
        """Return the outcome of a call where it cannot be known whether there is such a tool."""
        if self._tools.find(call.tool) is not None:
            return None
        found = never_listed(self._tools, call.tool)
        if found is None:
            return None
        name, server = found
        why = server.error or "it is still being connected"
        message = f"MCP server {name!r} is not connected: {why}. Nothing was called"
        return outcome_of_attempt(call, NotSent(status="tool_error", message=message), None)

    def _entry(self, call: CallTool, mark: str) -> Entry:
        deadline = self._now() + timedelta(seconds=call.timeout_s) + _GRACE
        again = repeatable(self._tools.find(call.tool))
        return Entry(mark, self._instance, deadline, repeatable=again)

    async def _judge(
        self, call: CallTool, known: Entry, entry: Entry, *, again: bool
    ) -> ToolOutcome | Entry:
        """Return the outcome of a call that was begun before, or the entry where it is ours to make
        again."""
        verdict = judge(
            known,
            call,
            repeatable=again,
            owner_lives=known.outcome is None and await self._is_alive(known.owner),
            now=self._now(),
        )
        match verdict:
            case Answer(outcome):
                _answered.add(1, "ledger")
                return outcome
            case CallAgain(previous) if await self._ledger.take_over(call, entry, previous):
                return entry
            case Wait() | CallAgain():
                raise QueryFailed("unavailable", f"{call.tool} is being called by another gateway")

    async def _is_alive(self, owner: UUID) -> bool:
        # A call of ours would have been joined: one that we began and no longer make is lost.
        return owner != self._instance and await self._ledger.lives(owner)

    async def _call(self, call: CallTool, deadline: float, origin: CallOrigin) -> ToolOutcome:
        attributes = {
            vocabulary.TOOL: call.tool,
            vocabulary.WORKFLOW_ID: str(call.workflow_id),
            vocabulary.NODE_ID: call.node_id,
        }
        began = asyncio.get_running_loop().time()
        with spanning(_tracer, "call tool", attributes, kind=SpanKind.CLIENT) as span:
            outcome = await self._call_once(call, deadline, origin)
            if outcome.status == "unknown" and repeatable(self._tools.find(call.tool)):
                again = await self._call_once(call, deadline, origin)
                outcome = after_unknown(outcome, again)
            outcome = outcome_of_attempt(call, outcome, self._tools.find(call.tool))
            span.set_attribute(vocabulary.OUTCOME, outcome.status)
        name = call.tool if self._tools.find(call.tool) else OTHER
        _duration.record(asyncio.get_running_loop().time() - began, name, outcome.status)
        return outcome

    async def _call_once(self, call: CallTool, deadline: float, origin: CallOrigin) -> ToolOutcome:
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            message = f"no time was left for {call.tool}. Nothing was called"
            return NotSent(status="timeout", message=message)
        return await self._tools.call(call.tool, call.args, left, origin)

    async def _store(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        """Store an outcome, however long that takes: one returned before could differ from the
        one returned later."""
        while True:
            try:
                return await self._ledger.settle(call, entry, outcome)
            except StorageUnavailable as outage:
                log.warning("the outcome of %s is not stored yet: %s", call.tool, outage)
            await asyncio.sleep(_STORE_AGAIN_S)


def _origin(call: CallTool, run: Run, side: CallerSide | None) -> CallOrigin:
    """Both attempts at a call have the same key: the second one repeats the first."""
    key = ids.call_trace_id(call.workflow_id, call.node_id, call.occurrence)
    return CallOrigin(Caller(call.scope, run.principal), key, side)
