"""Two executors on one run: one of them goes on, the other publishes nothing."""

import asyncio

import pytest
from pydantic import JsonValue

from pml_common.bus.errors import BusUnavailable, Fenced
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.builders import agreed, make_command
from services.executor.tests.support.harness import (
    deliver,
    finish,
    journal_of,
    make_dependencies,
    parked,
)
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools


async def three_calls(api: ProgramApi, args: JsonObject) -> JsonValue:
    api.log("begin")
    first = await api.call("n1", "api:a", {"x": 1})
    if api.decide("d1", first == {"x": 1}):
        second = await api.call("n2", "api:b", {"after": first})
        api.log("middle")
        return [first, second, await api.call("n3", "api:c", {"after": second})]
    return None


async def asking(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Make a first call that the analysis did not find."""
    return [await api.call(None, "mail:send"), await api.call("n1", "api:a")]


PROGRAMS = {"three": three_calls, "asking": asking}


async def test_a_frozen_executor_that_wakes_up_is_refused_and_states_nothing() -> None:
    bus, pool = MemoryBus(), MemoryPool(PROGRAMS)
    called, thawed = asyncio.Event(), asyncio.Event()
    shared = MemoryTools()

    class Freezing(MemoryTools):
        async def call(self, query: CallTool) -> ToolOutcome:
            outcome = await shared.call(query)
            called.set()
            await thawed.wait()
            return outcome

    command = make_command("three")
    frozen = asyncio.ensure_future(finish(command, make_dependencies(bus, pool, Freezing())))
    await called.wait()
    fact = await finish(command, make_dependencies(bus, pool, shared))
    before = await journal_of(bus, command)
    thawed.set()

    with pytest.raises(Fenced):
        await frozen
    assert fact.success
    assert await journal_of(bus, command) == before
    assert shared.made == {"api:a": 1, "api:b": 1, "api:c": 1}


async def test_taking_over_refuses_the_earlier_executor_at_once() -> None:
    """The new one fences it though it has nothing to append: it waits for the same call."""
    bus, pool = MemoryBus(), MemoryPool(PROGRAMS)
    asked, answer = asyncio.Semaphore(0), asyncio.Event()

    async def slow(args: JsonObject) -> ToolOutcome:
        await answer.wait()
        return ToolOutcome(status="ok", result=args)

    class Noticed(MemoryTools):
        async def call(self, query: CallTool) -> ToolOutcome:
            asked.release()
            return await super().call(query)

    tools = Noticed({"api:a": slow})
    command = make_command("three")
    first = asyncio.ensure_future(finish(command, make_dependencies(bus, pool, tools)))
    await asked.acquire()
    second = asyncio.ensure_future(finish(command, make_dependencies(bus, pool, tools)))
    await asked.acquire()
    answer.set()

    with pytest.raises(Fenced):
        await first
    assert (await second).success
    assert tools.made == {"api:a": 1, "api:b": 1, "api:c": 1}


async def test_a_command_that_comes_again_after_its_run_parked_does_not_refuse_who_goes_on() -> (
    None
):
    bus, pool = MemoryBus(), MemoryPool(PROGRAMS)
    begun, answer = asyncio.Event(), asyncio.Event()

    async def slow(args: JsonObject) -> ToolOutcome:
        begun.set()
        await answer.wait()
        return ToolOutcome(status="ok", result=args)

    tools = MemoryTools({"api:a": slow})
    command = make_command("asking")
    waits = await parked(command, make_dependencies(bus, pool, tools))

    goes_on = asyncio.ensure_future(
        finish(agreed(waits, command), make_dependencies(bus, pool, tools))
    )
    await begun.wait()
    await deliver(command, make_dependencies(bus, pool, tools))
    answer.set()

    assert (await goes_on).success
    assert tools.made == {"mail:send": 1, "api:a": 1}


class Forgetful(MemoryBus):
    """A journal that stores an append and loses the server's reply, once at `at`."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    async def publish(self, message: Message) -> int:
        sequence = await super().publish(message)
        self._at -= 1
        if self._at == 0:
            raise BusUnavailable("no answer")
        return sequence


@pytest.mark.parametrize("at", [1, 2, 3, 8])
async def test_an_append_whose_answer_was_lost_is_recognised_as_its_own(
    at: int,
) -> None:
    bus, tools = Forgetful(at), MemoryTools()
    command = make_command("three")

    fact = await finish(command, make_dependencies(bus, MemoryPool(PROGRAMS), tools))

    assert fact.success
    entries = await journal_of(bus, command)
    assert len(entries) == len({(e.type, e.trace_id, e.node_id, e.ts) for e in entries})
    assert tools.made == {"api:a": 1, "api:b": 1, "api:c": 1}
