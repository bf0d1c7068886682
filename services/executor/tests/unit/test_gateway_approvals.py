"""Calls that the executor's grant covers and the gateway wants approved."""

import asyncio

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.executor import RunFinished, RunWorkflow, WorkflowParked
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.builders import agreed, make_command, waiting
from services.executor.tests.support.fakes import crashing
from services.executor.tests.support.harness import (
    deliver,
    finish,
    journal_of,
    make_dependencies,
    parked,
)
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools

WHY = "the policy asks for fs:write since"


class Gateway(MemoryTools):
    """A gateway that makes calls of fs:write only under a grant of a person: `agreed_in`."""

    def __init__(self) -> None:
        super().__init__()
        self.agreed_in = set[str]()
        self.unheard = asyncio.Event()
        self.hears = asyncio.Event()
        self.hears.set()

    async def call(self, query: CallTool) -> ToolOutcome:
        if query.tool != "fs:write" or query.grant_digest in self.agreed_in:
            return await super().call(query)
        self.asked.append(query)
        self.unheard.set()
        await self.hears.wait()
        return ToolOutcome(status="ask", message=WHY)

    def agreed(self, fact: WorkflowParked, before: RunWorkflow) -> RunWorkflow:
        command = agreed(fact, before)
        self.agreed_in.add(command.grant.digest())
        return command


async def one_after_the_other(api: ProgramApi, args: JsonObject) -> JsonValue:
    read = await api.call("n1", "fs:read", {"path": "/a"})
    written = await api.call("n2", "fs:write", {"path": "/b", "what": read})
    return [written, await api.call("n3", "fs:stat")]


async def side_by_side(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Make a call that the analysis missed, one that the gateway wants approved, a granted one."""
    calls = (
        api.call("n1", "fs:read"),
        api.call("n2", "fs:write", {"n": 1}),
        api.call(None, "mail:send", {"to": "ann"}),
        api.call("n2", "fs:write", {"n": 2}),
    )
    return list(await asyncio.gather(*calls))


async def leaves_it(api: ProgramApi, args: JsonObject) -> JsonValue:
    left = asyncio.ensure_future(api.call("n2", "fs:write"))
    await asyncio.wait({left}, timeout=0)
    return "done"


RACES = "Promise.race"
"""A program whose text says that calls may be left when it ends."""
POOL = {"one": one_after_the_other, "side": side_by_side, RACES: leaves_it}


async def test_a_run_parks_where_the_gateway_says_so_and_makes_the_call_once() -> None:
    bus, gateway, command = MemoryBus(), Gateway(), make_command("one")
    deps = make_dependencies(bus, MemoryPool(POOL), gateway)
    fact = await parked(command, deps)
    assert (fact.wanted.tool, fact.wanted.node_id, fact.wanted.why) == ("fs:write", "n2", WHY)
    assert fact.wanted.args == {"path": "/b", "what": {"path": "/a"}}
    assert [each.tool for each in fact.task_results] == ["fs:read"]  # it was not made
    starts = [each.type for each in await journal_of(bus, command)]
    assert starts == ["capability_start", "tool_start", "tool_end", "tool_start"]

    end = await finish(gateway.agreed(fact, command), deps)
    assert end.success, end.error
    assert [each.tool for each in end.task_results] == ["fs:read", "fs:write", "fs:stat"]
    assert gateway.made == {"fs:read": 1, "fs:write": 1, "fs:stat": 1}
    asked = [query for query in gateway.asked if query.tool == "fs:write"]
    assert [query.asked_first_at is not None for query in asked] == [True, False]
    assert len({query.idempotency_key for query in asked}) == 1


async def test_a_gateway_that_asks_again_is_asked_about_again() -> None:
    gateway, command = Gateway(), make_command("one")
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), gateway)
    first = await parked(command, deps)
    second = await parked(agreed(first, command), deps)
    assert waiting(second) == waiting(first)
    assert second.event_id != first.event_id
    assert gateway.made == {"fs:read": 1}


async def test_one_question_tells_what_executor_and_gateway_ask_about() -> None:
    """Calls under way are awaited, since the gateway's answers may follow the program's pause."""
    gateway, command = Gateway(), make_command("side")
    gateway.hears.clear()
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), gateway)
    running = asyncio.create_task(parked(command, deps))
    async with asyncio.timeout(PATIENCE_S):
        await gateway.unheard.wait()
    assert not running.done()
    gateway.hears.set()
    fact = await running
    assert sorted(str(call.args) for call in waiting(fact)) == [
        "{'n': 1}",
        "{'n': 2}",
        "{'to': 'ann'}",
    ]
    assert [each.tool for each in fact.task_results] == ["fs:read"]
    end = await finish(gateway.agreed(fact, command), deps)
    assert end.result == [{}, {"n": 1}, {"to": "ann"}, {"n": 2}]
    assert gateway.made == {"fs:read": 1, "fs:write": 2, "mail:send": 1}


async def test_a_call_that_the_program_did_not_wait_for_is_asked_about_after_its_end() -> None:
    gateway, command = Gateway(), make_command(RACES)
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), gateway)
    fact = await parked(command, deps)
    assert fact.wanted.node_id == "n2"
    end = await finish(gateway.agreed(fact, command), deps)
    assert (end.result, gateway.made) == ("done", {"fs:write": 1})


async def test_a_dry_run_asks_nobody_for_the_gateway_either() -> None:
    gateway, command = Gateway(), make_command("one")
    grant = command.grant.model_copy(update={"dry_run": True})
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), gateway)
    fact = await finish(command.model_copy(update={"grant": grant}), deps)
    assert fact.error is not None
    assert (fact.error.kind, fact.error.message, fact.error.node_id) == ("denied", WHY, "n2")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("code", list(POOL))
async def test_an_executor_may_die_anywhere_around_such_a_park(
    code: str,
    after: bool,
) -> None:
    """Crash every executor at its n-th effect, and have another take over."""
    pool = MemoryPool(POOL)
    for effects in range(1, 40):
        bus, gateway, command, deaths = MemoryBus(), Gateway(), make_command(code), 0
        for _ in range(9):
            mortal_bus, mortal_tools, died = crashing(bus, gateway, effects, after)
            try:
                facts = await deliver(command, make_dependencies(mortal_bus, pool, mortal_tools))
            except (RuntimeError, ExceptionGroup):
                assert died()
                deaths += 1
                facts = await deliver(command, make_dependencies(bus, pool, gateway))
            (fact,) = facts
            if isinstance(fact, RunFinished):
                break
            assert isinstance(fact, WorkflowParked)
            command = gateway.agreed(fact, command)
        else:
            raise AssertionError("it is asked about again and again")
        assert fact.success, fact.error
        assert all(
            count == (2 if code == "side" and tool == "fs:write" else 1)
            for tool, count in gateway.made.items()
        )
        starts = [each for each in await journal_of(bus, command) if each.type == "tool_start"]
        assert len({(each.node_id, each.occurrence) for each in starts}) == len(starts)
        assert len(starts) == sum(gateway.made.values())
        if not deaths:
            assert effects > 3
            return
    raise AssertionError("no executor lived long enough")
