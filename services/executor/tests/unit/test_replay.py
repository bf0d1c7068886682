"""Runs that outlive their executors: dead ones, frozen ones, and ones that only seem so."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from pydantic import JsonValue

from pml_common.bus.errors import BusUnavailable, Fenced
from pml_common.bus.memory import MemoryBus
from pml_common.bus.port import Bus
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import TraceEvent
from pml_executor.adapters.memory_sandbox import MemoryPool, ProgramApi
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.handlers.on_run_workflow import Executor, on_run_workflow
from pml_executor.ports import Tools

MakeCommand = Callable[..., RunWorkflow]
MakeExecutor = Callable[..., Executor]
JournalOf = Callable[[Bus, RunWorkflow | RunFinished], Awaitable[list[TraceEvent]]]
ShortLife = Callable[[MemoryBus, MemoryTools, int, bool], tuple[Bus, Tools, Callable[[], bool]]]


async def three_calls(api: ProgramApi, args: JsonObject) -> JsonValue:
    api.log("begin")
    first = await api.call("n1", "api:a", {"x": 1})
    if api.decide("d1", first == {"x": 1}):
        second = await api.call("n2", "api:b", {"after": first})
        api.log("middle")
        return [first, second, await api.call("n3", "api:c", {"after": second})]
    return None


async def parallel_chains(api: ProgramApi, args: JsonObject) -> JsonValue:
    """The second call's occurrence depends on whose first call was answered first."""

    async def chain(i: int) -> JsonValue:
        value = await api.call("n1", "api:a", {"i": i})
        return await api.call("n2", "api:b", {"from": value})

    return list(await asyncio.gather(*(chain(i) for i in range(4))))


async def looping(api: ProgramApi, args: JsonObject) -> JsonValue:
    total = 0
    while api.decide("d1", total < 3):
        await api.call("n1", "api:a", {"total": total})
        total += 1
    return total


PROGRAMS = {"three": three_calls, "parallel": parallel_chains, "looping": looping}


async def finish(command: RunWorkflow, executor: Executor) -> RunFinished:
    async with asyncio.timeout(20):
        (fact,) = await on_run_workflow(command, executor)
    assert isinstance(fact, RunFinished)
    return fact


def outcome_of(fact: RunFinished) -> tuple[object, ...]:
    """What does not depend on when it ran."""
    tasks = sorted(
        (t.node_id, t.occurrence, t.tool, str(t.args), str(t.result)) for t in fact.task_results
    )
    return fact.success, fact.result, fact.executed_path, fact.decisions, len(tasks)


@pytest.mark.parametrize("code", list(PROGRAMS))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_wherever_an_executor_dies_the_next_one_ends_the_run_and_repeats_no_call(
    make_command: MakeCommand,
    make_executor: MakeExecutor,
    short_life: ShortLife,
    journal_of: JournalOf,
    code: str,
    after: bool,
) -> None:
    pool = MemoryPool(PROGRAMS)
    calm = MemoryTools()
    undisturbed = await finish(make_command(code), make_executor(MemoryBus(), pool, calm))
    deaths = 0
    for at in range(1, 100):
        bus, tools = MemoryBus(), shuffling_tools(at)
        command = make_command(code)
        mortal_bus, mortal_tools, died = short_life(bus, tools, at, after)
        with suppress(RuntimeError):
            await finish(command, make_executor(mortal_bus, pool, mortal_tools))
        deaths += died()
        fact = await finish(command, make_executor(bus, pool, tools))

        assert outcome_of(fact) == outcome_of(undisturbed)
        assert tools.made == calm.made
        logs = [e for e in await journal_of(bus, command) if e.type == "log"]
        assert len(logs) == (2 if code == "three" else 0)
        if not died():
            break
    assert deaths > 5


def shuffling_tools(seed: int) -> MemoryTools:
    """Tools that answer after a different number of turns each time."""
    chance = random.Random(seed)  # noqa: S311 - the same turns for the same seed

    async def slow(args: JsonObject) -> ToolOutcome:
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)
        return ToolOutcome(status="ok", result=args)

    return MemoryTools(dict.fromkeys(("api:a", "api:b", "api:c"), slow))


@pytest.mark.parametrize("code", list(PROGRAMS))
async def test_a_run_survives_many_deaths_in_a_row(
    make_command: MakeCommand, make_executor: MakeExecutor, short_life: ShortLife, code: str
) -> None:
    pool, bus, tools = MemoryPool(PROGRAMS), MemoryBus(), shuffling_tools(7)
    command = make_command(code)
    for life in range(50):
        mortal_bus, mortal_tools, died = short_life(bus, tools, 3 + life, life % 2 == 0)
        try:
            fact = await finish(command, make_executor(mortal_bus, pool, mortal_tools))
        except RuntimeError:
            assert died()
            continue
        assert fact.success
        assert set(tools.made.values()) <= {1, 3, 4}
        assert sum(tools.made.values()) == len(fact.task_results)
        return
    pytest.fail("no life was long enough")


async def test_a_frozen_executor_that_wakes_up_is_refused_and_states_nothing(
    make_command: MakeCommand, make_executor: MakeExecutor, journal_of: JournalOf
) -> None:
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
    frozen = asyncio.create_task(finish(command, make_executor(bus, pool, Freezing())))
    await called.wait()
    fact = await finish(command, make_executor(bus, pool, shared))
    before = await journal_of(bus, command)
    thawed.set()

    with pytest.raises(Fenced):
        await frozen
    assert fact.success
    assert await journal_of(bus, command) == before
    assert shared.made == {"api:a": 1, "api:b": 1, "api:c": 1}


async def test_taking_over_refuses_the_earlier_executor_at_once(
    make_command: MakeCommand, make_executor: MakeExecutor
) -> None:
    """Though the new one has nothing to append yet: it waits for the same call."""
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
    first = asyncio.create_task(finish(command, make_executor(bus, pool, tools)))
    await asked.acquire()
    second = asyncio.create_task(finish(command, make_executor(bus, pool, tools)))
    await asked.acquire()
    answer.set()

    with pytest.raises(Fenced):
        await first
    assert (await second).success
    assert tools.made == {"api:a": 1, "api:b": 1, "api:c": 1}


class Forgetful(MemoryBus):
    """Stores an append and loses the server's answer, once at `at`."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    async def publish(self, message: Message, *, expected_last: int | None = None) -> int:
        sequence = await super().publish(message, expected_last=expected_last)
        self._at -= 1
        if self._at == 0:
            raise BusUnavailable("no answer")
        return sequence


@pytest.mark.parametrize("at", [1, 2, 3, 8])
async def test_an_append_whose_answer_was_lost_is_recognised_as_its_own(
    make_command: MakeCommand, make_executor: MakeExecutor, journal_of: JournalOf, at: int
) -> None:
    bus, tools = Forgetful(at), MemoryTools()
    command = make_command("three")

    fact = await finish(command, make_executor(bus, MemoryPool(PROGRAMS), tools))

    assert fact.success
    entries = await journal_of(bus, command)
    assert len(entries) == len({(e.type, e.trace_id, e.node_id, e.ts) for e in entries})
    assert tools.made == {"api:a": 1, "api:b": 1, "api:c": 1}


async def changed_arguments(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await api.call("n1", "api:a", {"x": 2})


async def other_branch(api: ProgramApi, args: JsonObject) -> JsonValue:
    await api.call("n1", "api:a", {"x": 1})
    return api.decide("d1", False)


async def early_end(api: ProgramApi, args: JsonObject) -> JsonValue:
    return "nothing to do"


@pytest.mark.parametrize(
    ("other", "node"),
    [(changed_arguments, "n1"), (other_branch, "d1"), (early_end, "n1")],
)
async def test_a_program_that_contradicts_its_journal_ends_as_diverged(
    make_command: MakeCommand,
    make_executor: MakeExecutor,
    short_life: ShortLife,
    other: Callable[[ProgramApi, JsonObject], Awaitable[JsonValue]],
    node: str,
) -> None:
    bus, tools = MemoryBus(), MemoryTools()
    mortal_bus, mortal_tools, _ = short_life(bus, tools, 9, True)
    command = make_command("three")
    with pytest.raises(RuntimeError):
        await finish(command, make_executor(mortal_bus, MemoryPool(PROGRAMS), mortal_tools))
    made = dict(tools.made)

    fact = await finish(command, make_executor(bus, MemoryPool({"three": other}), tools))

    assert fact.error is not None
    assert (fact.error.kind, fact.error.node_id) == ("diverged", node)
    assert tools.made == made


async def test_the_time_of_a_dead_executor_counts(
    make_command: MakeCommand, make_executor: MakeExecutor, short_life: ShortLife
) -> None:
    bus, pool = MemoryBus(), MemoryPool(PROGRAMS)
    mortal_bus, mortal_tools, _ = short_life(bus, MemoryTools(), 2, False)
    command = make_command("three", timeout_s=0.2)
    with pytest.raises(RuntimeError):
        await finish(command, make_executor(mortal_bus, pool, mortal_tools))
    loop = asyncio.get_running_loop()
    passed = asyncio.Event()
    loop.call_later(0.25, passed.set)
    await passed.wait()

    tools = MemoryTools()
    fact = await finish(command, make_executor(bus, pool, tools))

    assert fact.error is not None
    assert fact.error.kind == "timeout"
    assert tools.asked == []
