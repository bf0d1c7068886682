"""Executors that die or freeze before their first append."""

import asyncio

import pytest

from pml_common.bus.errors import Fenced
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.harness import finish, journal_of, make_dependencies
from services.executor.tests.support.memory_sandbox import MemoryPool
from services.executor.tests.support.memory_tools import MemoryTools
from services.executor.tests.support.reading import (
    PROGRAMS,
    READ,
    WRITE,
    Deaf,
    appends,
    reading,
)


@pytest.mark.parametrize("code", ["read", "at once", "reads and a write"])
async def test_an_executor_frozen_before_its_first_append_is_refused_and_changes_nothing(
    code: str,
) -> None:
    bus, pool, shared = MemoryBus(), MemoryPool(PROGRAMS), MemoryTools()
    frozen, thawed = asyncio.Event(), asyncio.Event()

    class Freezing(MemoryTools):
        async def call(self, query: CallTool) -> ToolOutcome:
            frozen.set()
            await thawed.wait()
            return await shared.call(query)

    command = reading(code)
    first = asyncio.ensure_future(finish(command, make_dependencies(bus, pool, Freezing())))
    await frozen.wait()
    assert await appends(bus, command) == []
    fact = await finish(command, make_dependencies(bus, pool, shared))
    before, made = await appends(bus, command), dict(shared.made)
    thawed.set()
    with pytest.raises(Fenced):
        await first
    assert fact.success
    assert (await appends(bus, command), shared.made) == (before, made)


async def test_an_executor_frozen_before_its_first_append_is_refused_while_another_goes_on() -> (
    None
):
    """The redelivered command is fenced before its program starts."""
    bus, pool = MemoryBus(), MemoryPool(PROGRAMS)
    shared, begun, answer = MemoryTools(), asyncio.Semaphore(0), asyncio.Event()

    async def slow(args: JsonObject) -> ToolOutcome:
        begun.release()
        await answer.wait()
        return ToolOutcome(status="ok")

    frozen = MemoryTools({READ: slow})
    command = reading("reads and a write")
    first = asyncio.ensure_future(finish(command, make_dependencies(bus, pool, frozen)))
    await begun.acquire()
    shared.tools[WRITE] = slow
    second = asyncio.ensure_future(finish(command, make_dependencies(bus, pool, shared)))
    await begun.acquire()
    answer.set()
    with pytest.raises(Fenced):
        await first
    assert (await second).success
    assert frozen.made[WRITE] == 0
    assert shared.made[WRITE] == 1


async def test_what_only_reads_is_requested_again_with_the_same_key_and_not_as_new() -> None:
    bus, pool, tools = MemoryBus(), MemoryPool(PROGRAMS), MemoryTools()
    reached = asyncio.Event()

    class Dying(MemoryTools):
        async def call(self, query: CallTool) -> ToolOutcome:
            outcome = await tools.call(query)
            if query.node_id == "n4":
                reached.set()
                await asyncio.Event().wait()
            return outcome

    command = reading("ten reads")
    dying = asyncio.ensure_future(finish(command, make_dependencies(Deaf(bus), pool, Dying())))
    await reached.wait()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    assert await journal_of(bus, command) == []
    assert (await finish(command, make_dependencies(bus, pool, tools))).success
    assert tools.made == {READ: 10}
    assert [bool(each.asked_first_at) for each in tools.asked] == [True] * 5 + [False] * 10
