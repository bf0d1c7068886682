"""One tool call of a run: made at most once, its outcome kept before it is told (B6, B7)."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from opentelemetry import trace
from pydantic import JsonValue
from pydantic_core import to_json

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.decision import Policy
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_common.telemetry import vocabulary
from pml_common.telemetry.spans import spanning
from pml_gateway.application.runs import BeingCancelled, Runs, keys_of
from pml_gateway.domain.tool_calls.call_ruling import Listed, Ruling, Run, ruling, with_results
from pml_gateway.domain.tool_calls.ledger import (
    MISUSED,
    Answer,
    CallAgain,
    Entry,
    Wait,
    fingerprint,
    is_certainly_new,
    judge,
)
from pml_gateway.domain.tool_calls.repeatable import (
    NotSent,
    after_unknown,
    outcome_of_attempt,
    repeatable,
)
from pml_gateway.ports import CallLedger, KnownTools, never_listed

log = logging.getLogger(__name__)
_tracer = trace.get_tracer(__name__)

_GRACE = timedelta(seconds=10)
"""How long after its timeout a call may still be keeping its outcome."""

_ANSWER_WITHIN_S = 4.0
"""After its timeout a call is answered, if only to say that its outcome is not kept yet."""

_KEEP_TRYING_S = 0.5


_NOT_GOING_ON = "its workflow does not go on, or not under the grant that the call names"

_MOST_OCCURRENCES = 1000
"""Of a node: as many calls as a run may make."""


@dataclass(frozen=True)
class _Made:
    """A call being made in this process, for all who ask for it meanwhile."""

    fingerprint: str
    outcome: asyncio.Task[ToolOutcome]


class ToolCalls:
    """Makes the calls of runs for as long as this process lives, as `instance`."""

    def __init__(
        self,
        tools: KnownTools,
        ledger: CallLedger,
        instance: UUID,
        runs: Runs,
        policy_of: Callable[[Scope], Policy],
        now: Callable[[], datetime],
    ) -> None:
        self._tools = tools
        self._ledger = ledger
        self._instance = instance
        self._runs = runs
        self._policy_of = policy_of
        self._now = now
        self._being_made: dict[tuple[Scope, UUID], _Made] = {}
        self._under_way: dict[asyncio.Timeout, tuple[Scope, UUID]] = {}

    async def on_call_tool(self, call: CallTool) -> ToolOutcome:
        """Make the call, join it, or tell how it ended. Raises QueryFailed `unavailable` while
        that cannot be known: ask again under the same key."""
        run = await self._run_of(call)
        if run is None:
            return ToolOutcome(status="refused", message=_NOT_GOING_ON)
        key, mark = (call.scope, call.idempotency_key), fingerprint(call)
        made = self._being_made.get(key)
        if made is None:
            task = asyncio.create_task(self._make(call, mark, run), name=f"call {call.tool}")
            made = self._being_made[key] = _Made(mark, task)
            task.add_done_callback(lambda task: self._put_down(key, task))
        if made.fingerprint != mark:
            return MISUSED
        # An query_client that goes away must not take the call with it: the next one joins.
        done, _ = await asyncio.wait({made.outcome}, timeout=call.timeout_s + _ANSWER_WITHIN_S)
        if not done:
            raise QueryFailed("unavailable", f"{call.tool} was called; its outcome is not kept yet")
        return made.outcome.result()

    def is_calling(self, scope: Scope, workflow_id: str) -> bool:
        """Whether a call of this run is under way here."""
        return (scope, UUID(workflow_id)) in self._under_way.values()

    async def on_run_finished(self, run: RunFinished) -> None:
        """Cancel what an ended run still calls: nobody waits for it, and how it ends is unknown."""
        ended, now = (run.scope, run.workflow_id), asyncio.get_running_loop().time()
        for call, owner in self._under_way.items():
            if owner == ended and not call.expired():
                call.reschedule(now)

    async def close(self) -> None:
        """Give up what is still being made; whoever comes next finds it in the ledger."""
        tasks = [made.outcome for made in self._being_made.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _put_down(self, key: tuple[Scope, UUID], task: asyncio.Task[ToolOutcome]) -> None:
        del self._being_made[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("%s: %s", task.get_name(), error)

    async def _run_of(self, call: CallTool) -> Run | None:
        try:
            return await self._runs.of(call)
        except StorageUnavailable as outage:
            raise QueryFailed("unavailable", f"nothing was called: {outage}") from outage
        except BeingCancelled as wish:
            # Not refused: the run would end as denied, which is not why it ends.
            raise QueryFailed("unavailable", f"the run is being ended: {wish}") from wish

    async def _make(self, call: CallTool, mark: str, run: Run) -> ToolOutcome:
        deadline = asyncio.get_running_loop().time() + call.timeout_s
        if await self._heard_of(call):
            again = await self._run_of(call)  # it may have ended meanwhile
            if again is None:
                return ToolOutcome(status="refused", message=_NOT_GOING_ON)
            run = again
        entry = self._entry(call, mark)
        try:
            outcome = await self._begin(call, entry, run)
        except StorageUnavailable as outage:
            raise QueryFailed("unavailable", f"nothing was called: {outage}") from outage
        if outcome is None:
            outcome = await self._keep(call, entry, await self._see_through(call, deadline))
        if outcome.status == "ok" and run.grant.bound:
            run.keep(call.node_id, outcome.result, len(to_json(outcome.result)))
        return outcome

    async def _ruling(self, call: CallTool, run: Run) -> Ruling | None:
        """Whether the run's grant and the policy let it be made; results that this process does not
        hold are looked up in the ledger."""
        asked = set[str]()

        def held(node_id: str) -> Sequence[JsonValue]:
            asked.add(node_id)
            return run.results.get(node_id, ())

        found = ruling(run, call, self._listed(call), self._policy_of(call.scope), held)
        if found is None or not asked:
            return found
        keys = keys_of(call, asked, _MOST_OCCURRENCES)
        results = await self._ledger.results(call.scope, list(keys))
        more: dict[str, list[JsonValue]] = {}
        for key, result in results.items():
            more.setdefault(keys[key], []).append(result)
        present = self._policy_of(call.scope)
        return ruling(run, call, self._listed(call), present, with_results(run, more))

    def _listed(self, call: CallTool) -> Listed:
        return Listed(self._tools.find(call.tool), self._tools.hash_of(call.tool))

    async def _see_through(self, call: CallTool, deadline: float) -> ToolOutcome:
        """The call's outcome, unless its run ends before."""
        until_run_ends = asyncio.timeout(None)
        self._under_way[until_run_ends] = call.scope, call.workflow_id
        try:
            async with until_run_ends:
                return await self._call(call, deadline)
        except TimeoutError:
            if not until_run_ends.expired():
                raise
        finally:
            del self._under_way[until_run_ends]
        message = f"the run ended while {call.tool} was being called; the call was cancelled"
        return ToolOutcome(status="unknown", message=message)

    async def _begin(self, call: CallTool, entry: Entry, run: Run) -> ToolOutcome | None:
        """What is known already; None: the call is ours to make.

        That a call begins is noted only where it must not be made again.
        """
        absent = self._absent(call)
        why_not = await self._ruling(call, run)
        if why_not is None and call.attempt == "again":
            why_not = await self._not_again(call, entry)
        again = why_not is None and entry.repeatable
        if again and is_certainly_new(call, self._now()):
            return None
        only_look = again or why_not is not None
        known = await (self._ledger.find(call) if only_look else self._ledger.begin(call, entry))
        if known is None and absent is not None and why_not is not None:
            return absent
        if known is not None:
            return await self._look_up(call, known, entry, again=again)
        return None if why_not is None else ToolOutcome(status=why_not.status, message=why_not.why)

    async def _not_again(self, call: CallTool, entry: Entry) -> Ruling | None:
        """Why a call is not made a second time: its tool does not allow that, or the outcome of the
        first is known."""
        if not entry.repeatable:
            return Ruling("refused", f"{call.tool} may not be called again")
        first = await self._ledger.find(call.model_copy(update={"attempt": "first"}))
        if first is None or first.outcome is None or first.outcome.status == "unknown":
            return None
        return Ruling("refused", f"the outcome of the first call of {call.tool} is known")

    async def _heard_of(self, call: CallTool) -> bool:
        """Wait, within the call's time, until the server of a tool that nobody listed since this
        process began has told its tools; whether that was needed."""
        if self._tools.find(call.tool) is not None or not never_listed(self._tools, call.tool):
            return False
        await self._tools.reach(call.tool.partition(":")[0], call.timeout_s)
        return True

    def _absent(self, call: CallTool) -> ToolOutcome | None:
        """How a call ends where nobody can say whether there is such a tool."""
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

    async def _look_up(
        self, call: CallTool, known: Entry, entry: Entry, *, again: bool
    ) -> ToolOutcome | None:
        """What is known of a call that was begun before; None: it is ours to make again."""
        verdict = judge(
            known,
            call,
            repeatable=again,
            owner_lives=known.outcome is None and await self._lives(known.owner),
            now=self._now(),
        )
        match verdict:
            case Answer(outcome):
                return outcome
            case CallAgain(previous) if await self._ledger.take_over(call, entry, previous):
                return None
            case Wait() | CallAgain():
                raise QueryFailed("unavailable", f"{call.tool} is being called by another gateway")

    async def _lives(self, owner: UUID) -> bool:
        # Ours would have been joined above: what we had begun and no longer make is lost.
        return owner != self._instance and await self._ledger.lives(owner)

    async def _call(self, call: CallTool, deadline: float) -> ToolOutcome:
        attributes = {
            vocabulary.TOOL: call.tool,
            vocabulary.WORKFLOW_ID: str(call.workflow_id),
            vocabulary.NODE_ID: call.node_id,
        }
        with spanning(_tracer, "call tool", attributes) as span:
            outcome = await self._call_once(call, deadline)
            if outcome.status == "unknown" and repeatable(self._tools.find(call.tool)):
                outcome = after_unknown(outcome, await self._call_once(call, deadline))
            outcome = outcome_of_attempt(call, outcome, self._tools.find(call.tool))
            span.set_attribute(vocabulary.OUTCOME, outcome.status)
        return outcome

    async def _call_once(self, call: CallTool, deadline: float) -> ToolOutcome:
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            message = f"no time was left for {call.tool}. Nothing was called"
            return NotSent(status="timeout", message=message)
        return await self._tools.call(call.tool, call.args, left)

    async def _keep(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        """Keep an outcome, whatever time that takes: telling it first could tell two."""
        while True:
            try:
                return await self._ledger.settle(call, entry, outcome)
            except StorageUnavailable as outage:
                log.warning("the outcome of %s waits for Postgres: %s", call.tool, outage)
            await asyncio.sleep(_KEEP_TRYING_S)
