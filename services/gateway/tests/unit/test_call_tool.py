"""Tool calls of runs: made once, joined, answered from the ledger, or unknown."""

import asyncio
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import QueryFailed
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.application.tool_calls import ToolCalls
from pml_gateway.domain.tool_calls.ledger import LOST, MISUSED, Entry, fingerprint
from pml_gateway.domain.tool_calls.repeatable import NotSent
from pml_gateway.ports import CallOrigin
from services.gateway.tests.support.builders import READ, WRITE, later, workflow
from services.gateway.tests.support.calling import call, tool_calls
from services.gateway.tests.support.fake_stores import FakeLedger
from services.gateway.tests.support.harness import FakeServers

OK = ToolOutcome(status="ok", result={"path": "/notes.txt"})
UNKNOWN = ToolOutcome(status="unknown", message="the connection broke")


@dataclass
class HeldServers(FakeServers):
    """Tools that answer once `gate` is open."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        outcome = await super().call(tool_id, args, timeout_s, origin)
        await self.gate.wait()
        return outcome


class FrailLedger(FakeLedger):
    """Fails a given number of times."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0

    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        self._fail()
        return await super().begin(call, entry)

    async def settle(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        self._fail()
        return await super().settle(call, entry, outcome)

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise StorageUnavailable("Postgres does not answer")


@dataclass
class Bench:
    """A gateway's tool calls, its servers, its ledger."""

    servers: FakeServers = field(default_factory=FakeServers)
    ledger: FrailLedger = field(default_factory=FrailLedger)
    instance: UUID = field(default_factory=uuid4)

    def calls(self) -> ToolCalls:
        """Build the handler of a process that just started."""
        return tool_calls(self.servers, self.ledger, self.instance)

    async def leave_begun(self, asked: CallTool, *, alive: bool) -> UUID:
        """Store a call that another process began and did not end."""
        owner = uuid4()
        await self.ledger.begin(asked, Entry(fingerprint(asked), owner, later(60)))
        if alive:
            self.ledger.alive.add(owner)
        return owner


async def test_a_call_is_made_and_its_outcome_kept() -> None:
    bench, asked = Bench(), call(workflow())
    assert await bench.calls().on_call_tool(asked) == OK
    (entry,) = bench.ledger.entries.values()
    assert (entry.outcome, entry.owner) == (OK, bench.instance)


async def test_a_call_asked_again_gets_its_first_outcome_even_in_another_process() -> None:
    bench, asked = Bench(), call(workflow(), WRITE)
    bench.servers.outcomes = [ToolOutcome(status="tool_error", message="disk full")]
    first = await bench.calls().on_call_tool(asked)
    bench.instance = uuid4()
    assert await bench.calls().on_call_tool(asked) == first
    assert bench.servers.made == ["fs:write"]


async def test_calls_at_once_are_one_call() -> None:
    servers = HeldServers()
    bench, asked = Bench(servers), call(workflow(), WRITE)
    calls = bench.calls()
    asking = [asyncio.create_task(calls.on_call_tool(asked)) for _ in range(5)]
    await eventually(lambda: servers.made)
    servers.gate.set()
    assert await asyncio.gather(*asking) == [OK] * 5
    assert servers.made == ["fs:write"]


async def test_an_asker_that_leaves_does_not_take_the_call_with_it() -> None:
    servers = HeldServers()
    bench, asked = Bench(servers), call(workflow(), WRITE)
    calls = bench.calls()
    asking = asyncio.create_task(calls.on_call_tool(asked))
    await eventually(lambda: servers.made)
    asking.cancel()
    await asyncio.wait({asking})
    servers.gate.set()
    assert await calls.on_call_tool(asked) == OK
    assert servers.made == ["fs:write"]


@pytest.mark.parametrize("tool", [READ, WRITE])
async def test_a_call_that_a_living_gateway_makes_is_to_be_asked_again(
    tool: ToolDefinition,
) -> None:
    bench, asked = Bench(), call(workflow(), tool)
    await bench.leave_begun(asked, alive=True)
    with pytest.raises(QueryFailed, match="another gateway") as failed:
        await bench.calls().on_call_tool(asked)
    assert failed.value.code == "unavailable"
    assert bench.servers.made == []


async def test_a_lost_call_of_a_read_only_tool_is_made_again() -> None:
    bench, asked = Bench(), call(workflow(), READ)
    await bench.leave_begun(asked, alive=False)
    assert await bench.calls().on_call_tool(asked) == OK
    assert bench.servers.made == ["fs:read"]


async def test_a_lost_call_of_any_other_tool_is_unknown_and_never_made_again() -> None:
    bench, asked = Bench(), call(workflow(), WRITE)
    await bench.leave_begun(asked, alive=False)
    for _ in range(2):
        assert await bench.calls().on_call_tool(asked) == LOST
    assert bench.servers.made == []


async def test_a_call_that_this_process_lost_is_unknown_too() -> None:
    bench, asked = Bench(), call(workflow(), WRITE)
    bench.instance = await bench.leave_begun(asked, alive=True)
    assert await bench.calls().on_call_tool(asked) == LOST


async def test_of_two_that_take_a_lost_call_over_one_makes_it() -> None:
    bench, asked = Bench(), call(workflow(), READ)
    await bench.leave_begun(asked, alive=False)
    other = replace(bench, instance=uuid4())
    outcomes = await asyncio.gather(
        bench.calls().on_call_tool(asked),
        other.calls().on_call_tool(asked),
        return_exceptions=True,
    )
    assert OK in outcomes
    assert all(each == OK or isinstance(each, QueryFailed) for each in outcomes)


async def test_a_key_that_stands_for_another_call_is_refused() -> None:
    bench, new = Bench(), workflow()
    calls = bench.calls()
    await calls.on_call_tool(call(new, WRITE))
    assert await calls.on_call_tool(call(new, WRITE, {"path": "/other"})) == MISUSED
    held = HeldServers()
    calls = replace(bench, servers=held, ledger=FrailLedger()).calls()
    first = asyncio.create_task(calls.on_call_tool(call(new, WRITE)))
    await eventually(lambda: held.made)
    assert await calls.on_call_tool(call(new, WRITE, {"path": "/other"})) == MISUSED
    held.gate.set()
    assert await first == OK


OTHER: JsonObject = {"path": "/other"}
OTHER_OK = ToolOutcome(status="ok", result=OTHER)


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_run_that_starts_over_may_read_something_else(restarted: bool) -> None:
    """Its executor died before the journal had the call, whose arguments follow the clock."""
    bench, new = Bench(), workflow()
    calls = bench.calls()
    assert await calls.on_call_tool(call(new)) == OK
    calls = bench.calls() if restarted else calls
    assert await calls.on_call_tool(call(new, args=OTHER)) == OTHER_OK
    assert await bench.calls().on_call_tool(call(new, args=OTHER)) == OTHER_OK
    assert bench.servers.made == ["fs:read", "fs:read"]


async def test_a_call_that_changes_something_may_follow_where_a_lost_execution_read() -> None:
    bench, written = Bench(), call(workflow(), WRITE)
    read = written.model_copy(update={"tool": READ.tool_id})
    await bench.ledger.settle(read, Entry(fingerprint(read), uuid4(), later(60)), OTHER_OK)
    for _ in range(2):
        assert await bench.calls().on_call_tool(written) == OK
    assert bench.servers.made == ["fs:write"]
    (entry,) = bench.ledger.entries.values()
    assert (entry.tool, entry.fingerprint) == (WRITE.tool_id, fingerprint(written))


async def test_two_executions_may_read_under_one_key_at_once() -> None:
    """A frozen executor's call is still under way when the one that took over makes another."""
    held = HeldServers()
    bench, new = Bench(held), workflow()
    calls = bench.calls()
    zombie = asyncio.create_task(calls.on_call_tool(call(new)))
    await eventually(lambda: held.made)
    ours = asyncio.create_task(calls.on_call_tool(call(new, args=OTHER)))
    await eventually(lambda: len(held.made) == 2)
    held.gate.set()
    assert await asyncio.gather(zombie, ours) == [OK, OTHER_OK]


async def test_what_the_policy_forbids_now_is_not_read_instead() -> None:
    bench, new = Bench(), workflow()
    await bench.calls().on_call_tool(call(new))
    changed = READ.model_copy(update={"description": "another tool"})
    bench.servers.listed = {"fs": (changed,)}
    refused = await bench.calls().on_call_tool(call(new, args=OTHER))
    assert refused.status == "refused"
    assert "has changed" in str(refused.message)
    assert bench.servers.made == ["fs:read"]


async def test_a_forged_grant_calls_nothing_and_leaves_no_mark() -> None:
    bench, asked = Bench(), call(workflow())
    forged = asked.model_copy(update={"grant_digest": "0" * 64})
    outcome = await bench.calls().on_call_tool(forged)
    assert outcome.status == "refused"
    assert bench.servers.made == []
    assert bench.ledger.entries == {}


async def test_a_tool_that_changed_since_is_refused_but_a_kept_outcome_is_told() -> None:
    bench, asked = Bench(), call(workflow())
    other = call(workflow())
    assert await bench.calls().on_call_tool(asked) == OK
    changed = READ.model_copy(update={"annotations": ToolAnnotations()})
    bench.servers.listed = {"fs": (changed,)}
    assert await bench.calls().on_call_tool(asked) == OK
    refused = await bench.calls().on_call_tool(other)
    assert refused.status == "refused"
    assert "has changed" in str(refused.message)
    await bench.leave_begun(other, alive=False)
    assert await bench.calls().on_call_tool(other) == LOST
    assert bench.servers.made == ["fs:read"]


async def test_a_broken_call_is_made_again_only_if_it_may_be() -> None:
    bench = Bench()
    bench.servers.outcomes = [UNKNOWN]
    assert await bench.calls().on_call_tool(call(workflow(), READ)) == OK
    assert bench.servers.made == ["fs:read", "fs:read"]
    bench = Bench()
    bench.servers.outcomes = [UNKNOWN]
    assert await bench.calls().on_call_tool(call(workflow(), WRITE)) == UNKNOWN
    assert bench.servers.made == ["fs:write"]


async def test_a_call_that_took_effect_is_unknown_where_its_server_stays_away() -> None:
    bench = Bench()
    away = NotSent(status="tool_error", message="not connected. Nothing was called")
    bench.servers.outcomes = [UNKNOWN, away]
    outcome = await bench.calls().on_call_tool(call(workflow(), READ))
    assert outcome.status == "unknown"
    assert "othing was called" not in str(outcome.message)
    (entry,) = bench.ledger.entries.values()
    assert entry.outcome == outcome


async def test_without_storage_nothing_is_called() -> None:
    bench, asked = Bench(), call(workflow(), WRITE)
    bench.ledger.failures = 1
    with pytest.raises(QueryFailed, match="nothing was called") as failed:
        await bench.calls().on_call_tool(asked)
    assert failed.value.code == "unavailable"
    assert bench.servers.made == []
    assert await bench.calls().on_call_tool(asked) == OK


async def test_an_outcome_waits_for_storage_before_it_is_told() -> None:
    servers = HeldServers()
    bench, asked = Bench(servers), call(workflow(), WRITE)
    calls = bench.calls()
    asking = asyncio.create_task(calls.on_call_tool(asked))
    await eventually(lambda: servers.made)
    bench.ledger.failures = 1
    servers.gate.set()
    assert await asking == OK
    (entry,) = bench.ledger.entries.values()
    assert entry.outcome == OK
    assert servers.made == ["fs:write"]


async def test_a_gateway_that_stops_leaves_its_calls_to_the_next() -> None:
    servers = HeldServers()
    bench, asked = Bench(servers), call(workflow(), WRITE)
    calls = bench.calls()
    asking = asyncio.create_task(calls.on_call_tool(asked))
    await eventually(lambda: servers.made)
    await calls.close()
    await asyncio.wait({asking})
    assert asking.cancelled()
    bench.instance = uuid4()
    assert await bench.calls().on_call_tool(asked) == LOST
