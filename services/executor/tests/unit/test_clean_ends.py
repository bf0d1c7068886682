"""A sandbox process is used again only after a run that ended in order."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import finish, make_dependencies, parked
from services.executor.tests.support.memory_sandbox import MemoryProgram, MemorySandbox, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools, ending


class Process(MemorySandbox):
    """A process that can always be renewed once its program has ended."""

    def __init__(self, programs: Mapping[str, MemoryProgram]) -> None:
        super().__init__(programs)
        self.alive, self.finished, self.killed = True, False, False

    def finish(self) -> None:
        super().finish()
        self.finished, self.killed = True, False

    def kill(self) -> None:
        super().kill()
        self.finished, self.killed = False, True

    async def renew(self, *, realm: bool = False) -> bool:
        return self.finished

    async def close(self) -> None:
        await super().close()
        self.alive = False


@asynccontextmanager
async def one_process(
    programs: Mapping[str, MemoryProgram],
) -> AsyncGenerator[tuple[DenoPool, list[Process]]]:
    """Run a pool of one process at a time; yield it and the list of its processes."""
    started: list[Process] = []

    async def start() -> Process:
        started.append(Process(programs))
        return started[-1]

    async with DenoPool(start, PoolSize(spares=0, max_processes=1)) as pool:
        yield pool, started


async def returns(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await api.call("n1", "fs:read")


async def throws(api: ProgramApi, args: JsonObject) -> JsonValue:
    raise ValueError("the program's own")


async def leaves_a_call(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Return while its call is under way."""
    left = asyncio.ensure_future(api.call("n1", "fs:write"))
    await asyncio.wait({left}, timeout=0)
    return None


async def asks_too_much(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await api.call("n1", "cap:secret_read")


async def wants_a_person(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await api.call("n1", "secret:read")


async def never_ends(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await asyncio.get_running_loop().create_future()


PROGRAMS: dict[str, MemoryProgram] = {
    "returns": returns,
    "throws": throws,
    "leaves a call": leaves_a_call,
    "asks too much": asks_too_much,
    "wants a person": wants_a_person,
    "never ends": never_ends,
}


@pytest.mark.parametrize(
    ("code", "kind", "again"),
    [
        ("returns", None, True),
        ("throws", "user_error", True),
        ("leaves a call", "outcome_unknown", False),
        ("asks too much", "denied", False),
        ("never ends", "timeout", False),
    ],
)
async def test_a_process_is_used_again_only_after_a_run_in_order(
    code: str,
    kind: str | None,
    again: bool,
) -> None:
    tools = MemoryTools({"fs:write": ending(ToolOutcome(status="unknown"))})
    async with one_process(PROGRAMS) as (pool, started):
        deps = make_dependencies(MemoryBus(), pool, tools)
        timeout_s = 0.2 if kind == "timeout" else 60.0
        fact = await finish(make_command(code, timeout_s=timeout_s), deps)
        assert (fact.error and fact.error.kind) == kind
        assert (await finish(make_command("returns"), deps)).success
        assert (len(started) == 1) == again
        assert started[0].alive == again


async def test_a_process_is_not_used_again_after_a_run_that_parked() -> None:
    async with one_process(PROGRAMS) as (pool, started):
        deps = make_dependencies(MemoryBus(), pool, MemoryTools())
        await parked(make_command("wants a person"), deps)
        assert (await finish(make_command("returns"), deps)).success
        assert len(started) == 2


async def test_a_program_that_leaves_a_call_under_way_does_not_go_on_until_that_ends() -> None:
    release = asyncio.Event()

    async def slow(_: JsonObject) -> ToolOutcome:
        await release.wait()
        return ToolOutcome(status="ok")

    async with one_process(PROGRAMS) as (pool, started):
        deps = make_dependencies(MemoryBus(), pool, MemoryTools({"fs:write": slow}))
        run = asyncio.ensure_future(finish(make_command("leaves a call"), deps))
        await eventually(lambda: bool(started) and started[0].killed)
        release.set()
        fact = await run
    assert fact.error is not None
    assert "fs:write (n1)" in fact.error.message
    assert [task.success for task in fact.task_results] == [True]


async def test_a_replay_that_leaves_out_what_the_journal_has_ends_its_process() -> None:
    bus, command = MemoryBus(), make_command("x")

    async def dies(_: JsonObject) -> ToolOutcome:
        raise RuntimeError("the executor died here")

    with suppress(BaseExceptionGroup, RuntimeError):
        async with one_process({"x": returns}) as (pool, _):
            await finish(command, make_dependencies(bus, pool, MemoryTools({"fs:read": dies})))
    async with one_process({"x": throws}) as (pool, started):
        fact = await finish(command, make_dependencies(bus, pool, MemoryTools()))
        assert fact.error is not None
        assert fact.error.kind == "diverged"
        await eventually(lambda: not started[0].alive)
