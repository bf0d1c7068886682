"""Cancelling of runs in any state."""

import asyncio
from dataclasses import replace
from functools import partial
from uuid import uuid4

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import Fenced, Retryable
from pml_common.contracts.executor import CancelRun, RunFinished, RunWorkflow
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import TraceEvent
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters.bus_journal import BusJournal
from pml_executor.application import active_runs
from pml_executor.application.active_runs import ActiveRuns, RunStopped
from pml_executor.application.run_dependencies import RunDependencies
from pml_executor.entrypoints.bus.on_cancel_run import on_cancel_run
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.fakes import HeldTools
from services.executor.tests.support.harness import deliver, finish, last_append, make_dependencies
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools


async def two_calls(api: ProgramApi, args: JsonObject) -> JsonValue:
    await api.call("n1", "fs:read")
    return await api.call("n2", "fs:write")


def cancel(run: RunWorkflow) -> CancelRun:
    return CancelRun(
        scope=run.scope,
        command_id=uuid4(),
        workflow_id=run.workflow_id,
        run=run,
        why="mira cancelled it",
    )


async def ended(command: CancelRun, deps: RunDependencies) -> RunFinished:
    async with asyncio.timeout(PATIENCE_S):
        assert await on_cancel_run(command, deps) == ()
    fact = await last_append(deps, command.run)
    assert isinstance(fact, RunFinished)
    return fact


async def test_a_run_is_stopped_and_its_end_says_what_was_done_and_what_is_unknown() -> None:
    bus, tools, pool = MemoryBus(), HeldTools(), MemoryPool({"two": two_calls})
    command, deps = make_command("two"), make_dependencies(bus, pool, tools)
    running = ActiveRuns(partial(deliver, deps=deps))
    run = asyncio.create_task(running.run(command))
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
        await running.stop(cancel(command))
        with pytest.raises(RunStopped, match="was cancelled while it ran here"):
            await run

    fact = await ended(cancel(command), deps)
    assert fact.error is not None
    assert fact.error.kind == "cancelled"
    assert fact.error.message == (
        "mira cancelled it. It has called fs:read. The outcome of these calls is unknown: fs:write."
    )
    assert await ended(cancel(command), deps) == fact
    assert await finish(command, deps) == fact
    assert tools.made == {"fs:read": 1, "fs:write": 1}


async def test_an_executor_that_does_not_hear_of_it_is_stopped_by_the_journal() -> None:
    bus, tools, pool = MemoryBus(), HeldTools(), MemoryPool({"two": two_calls})
    command = make_command("two")
    run = asyncio.create_task(deliver(command, make_dependencies(bus, pool, tools)))
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
        fact = await ended(cancel(command), make_dependencies(bus, pool, tools))
        tools.release.set()
        with pytest.raises(Fenced):
            await run
    assert not fact.success


async def test_a_run_without_time_left_says_what_was_done_and_what_is_unknown() -> None:
    tools, now = HeldTools(), 0.0
    deps = make_dependencies(MemoryBus(), MemoryPool({"two": two_calls}), tools)
    deps = replace(deps, monotonic=lambda: now)  # read again after 0.3 s
    run = asyncio.create_task(finish(make_command("two", timeout_s=0.3), deps))  # waits: it is over
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
        now = 1.0
        fact = await run
    assert fact.error is not None
    assert fact.error.kind == "timeout"
    assert fact.error.message == (
        "the run took longer than the 0.3 s it had. It has called fs:read. "
        "The outcome of these calls is unknown: fs:write."
    )


async def test_a_run_that_no_executor_took_up_yet_calls_nothing() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool({"two": two_calls})
    command, deps = make_command("two"), make_dependencies(bus, pool, tools)
    fact = await ended(cancel(command), deps)
    assert fact.error is not None
    assert fact.error.message == "mira cancelled it. It has called nothing."
    with pytest.raises(Fenced):  # at its first append, before its first call
        await finish(command, deps)
    assert await finish(command, deps) == fact
    assert tools.made == {}


async def test_a_run_that_has_ended_stays_as_it_ended() -> None:
    deps = make_dependencies(MemoryBus(), MemoryPool({"two": two_calls}), MemoryTools())
    command = make_command("two")
    fact = await finish(command, deps)
    assert fact.success
    assert await ended(cancel(command), deps) == fact


async def test_where_another_executor_is_faster_it_is_tried_again() -> None:
    class Overtaken(BusJournal):
        async def append(self, *entries: TraceEvent) -> None:
            raise Fenced("journal", 1)

    bus = MemoryBus()
    deps = make_dependencies(bus, MemoryPool({}), MemoryTools())
    object.__setattr__(deps, "open_journal", partial(Overtaken, bus))
    with pytest.raises(Retryable):
        await on_cancel_run(cancel(make_command("two")), deps)


async def test_only_the_run_that_is_meant_is_stopped_and_its_own_timeouts_are_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = make_command("two")

    async def late(command: RunWorkflow) -> list[RunFinished]:
        raise TimeoutError(command.principal)

    running = ActiveRuns(late)
    monkeypatch.setattr(active_runs, "ELSEWHERE_S", 0.0)
    await running.stopped(cancel(other))
    await running.stop(cancel(other))
    with pytest.raises(TimeoutError, match="agent:test"):
        await running.run(other)
