"""Runs that are cancelled, wherever they stand."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from uuid import uuid4

import pytest
from pydantic import JsonValue

from pml_common.bus.errors import Fenced, Retryable
from pml_common.bus.memory import MemoryBus
from pml_common.contracts.executor import CancelRun, RunFinished, RunWorkflow
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import TraceEvent
from pml_executor.adapters.bus_journal import BusJournal
from pml_executor.adapters.memory_sandbox import MemoryPool, ProgramApi
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.application.running import Running, Stopped
from pml_executor.entrypoints.bus.on_cancel_run import on_cancel_run
from pml_executor.entrypoints.bus.on_run_workflow import RunDependencies, on_run_workflow

MakeCommand = Callable[..., RunWorkflow]
MakeExecutor = Callable[..., RunDependencies]
Finish = Callable[[RunWorkflow, RunDependencies], Awaitable[RunFinished]]


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


class Slow(MemoryTools):
    """Whose `fs:write` does not end before it is let."""

    def __init__(self) -> None:
        super().__init__({"fs:write": self._write})
        self.begun, self.release = asyncio.Event(), asyncio.Event()

    async def _write(self, _: JsonObject) -> ToolOutcome:
        self.begun.set()
        await self.release.wait()
        return ToolOutcome(status="ok")


async def ended(command: CancelRun, executor: RunDependencies) -> RunFinished:
    async with asyncio.timeout(30):
        (fact,) = await on_cancel_run(command, executor)
    assert isinstance(fact, RunFinished)
    return fact


async def test_a_run_is_stopped_and_its_end_says_what_was_done_and_what_is_unknown(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    bus, tools, pool = MemoryBus(), Slow(), MemoryPool({"two": two_calls})
    command, executor = make_command("two"), make_executor(bus, pool, tools)
    running = Running(partial(on_run_workflow, executor=executor))
    run = asyncio.create_task(running.run(command))
    async with asyncio.timeout(30):
        await tools.begun.wait()
        await running.stop(cancel(command))
        with pytest.raises(Stopped, match="was cancelled while it ran here"):
            await run

    fact = await ended(cancel(command), executor)
    assert fact.error is not None
    assert fact.error.kind == "cancelled"
    assert fact.error.message == (
        "mira cancelled it. It has called fs:read. The outcome of these calls is unknown: fs:write."
    )
    assert await ended(cancel(command), executor) == fact
    assert await finish(command, executor) == fact
    assert tools.made == {"fs:read": 1, "fs:write": 1}


async def test_an_executor_that_does_not_hear_of_it_is_stopped_by_the_journal(
    make_command: MakeCommand, make_executor: MakeExecutor
) -> None:
    bus, tools, pool = MemoryBus(), Slow(), MemoryPool({"two": two_calls})
    command = make_command("two")
    run = asyncio.create_task(on_run_workflow(command, make_executor(bus, pool, tools)))
    async with asyncio.timeout(30):
        await tools.begun.wait()
        fact = await ended(cancel(command), make_executor(bus, pool, tools))
        tools.release.set()
        with pytest.raises(Fenced):
            await run
    assert not fact.success


async def test_a_run_without_time_left_says_what_was_done_and_what_is_unknown(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    executor = make_executor(MemoryBus(), MemoryPool({"two": two_calls}), Slow())
    fact = await finish(make_command("two", timeout_s=0.3), executor)
    assert fact.error is not None
    assert fact.error.kind == "timeout"
    assert fact.error.message == (
        "the run took longer than the 0.3 s it had. It has called fs:read. "
        "The outcome of these calls is unknown: fs:write."
    )


async def test_a_run_that_no_executor_took_up_yet_never_runs(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool({"two": two_calls})
    command, executor = make_command("two"), make_executor(bus, pool, tools)
    fact = await ended(cancel(command), executor)
    assert fact.error is not None
    assert fact.error.message == "mira cancelled it. It has called nothing."
    assert await finish(command, executor) == fact
    assert pool.leased == 0


async def test_a_run_that_has_ended_stays_as_it_ended(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    executor = make_executor(MemoryBus(), MemoryPool({"two": two_calls}), MemoryTools())
    command = make_command("two")
    fact = await finish(command, executor)
    assert fact.success
    assert await ended(cancel(command), executor) == fact


async def test_where_another_executor_is_faster_it_is_tried_again(
    make_command: MakeCommand, make_executor: MakeExecutor
) -> None:
    class Overtaken(BusJournal):
        async def append(self, *entries: TraceEvent) -> None:
            raise Fenced("journal", 1)

    bus = MemoryBus()
    executor = make_executor(bus, MemoryPool({}), MemoryTools())
    object.__setattr__(executor, "open_journal", partial(Overtaken, bus))
    with pytest.raises(Retryable):
        await on_cancel_run(cancel(make_command("two")), executor)


async def test_only_the_run_that_is_meant_is_stopped_and_its_own_timeouts_are_its_own(
    make_command: MakeCommand,
) -> None:
    other = make_command("two")

    async def late(command: RunWorkflow) -> list[RunFinished]:
        raise TimeoutError(command.principal)

    running = Running(late)
    await running.stop(cancel(other))
    with pytest.raises(TimeoutError, match="agent:test"):
        await running.run(other)
