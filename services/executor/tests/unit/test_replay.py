"""Runs that outlive their executors, and programs that contradict their journals."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from pydantic import JsonValue

from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.fakes import crashing
from services.executor.tests.support.harness import finish, journal_of, make_dependencies
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


async def parallel_chains(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Run chains in which an occurrence depends on the order of answers."""

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


async def counting(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Run a loop so often that its reports are in the end only counted."""
    for index in range(3):
        api.round("l1")
        api.took("d1", "default" if index else "case:first")
        await api.call("n1", "api:a", {"index": index})
    api.round("l1", counted=4)
    api.took("d1", "default", counted=4)
    await api.call("n2", "api:b")
    api.round("l1", counted=3)
    return "done"


ALL_READ = ("api:a", "api:b", "api:c")
PROGRAMS = {
    "three": three_calls,
    "parallel": parallel_chains,
    "looping": looping,
    "counting": counting,
}


def outcome_of(fact: RunFinished) -> tuple[object, ...]:
    """Return the parts of a result that are independent of time and of the order of answers."""
    tasks = sorted((t.node_id, t.tool, str(t.args), str(t.result)) for t in fact.task_results)
    return fact.success, fact.result, fact.executed_path, fact.decisions, tasks


@pytest.mark.parametrize("code", list(PROGRAMS))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("reads", [(), ("api:a",), ("api:b", "api:c"), ALL_READ], ids=",".join)
async def test_wherever_an_executor_dies_the_next_one_ends_the_run_and_repeats_no_call(
    code: str,
    after: bool,
    reads: Sequence[str],
) -> None:
    pool = MemoryPool(PROGRAMS)
    calm = MemoryTools()
    undisturbed = await finish(make_command(code), make_dependencies(MemoryBus(), pool, calm))
    deaths = 0
    for at in range(1, 100):
        bus, tools = MemoryBus(), shuffling_tools(at)
        command = make_command(code, read_only_tools=reads)
        mortal_bus, mortal_tools, died = crashing(bus, tools, at, after)
        with suppress(RuntimeError):
            await finish(command, make_dependencies(mortal_bus, pool, mortal_tools))
        deaths += died()
        fact = await finish(command, make_dependencies(bus, pool, tools))

        assert outcome_of(fact) == outcome_of(undisturbed)
        assert tools.made == calm.made
        assert not claimed_first_in_vain(tools.asked)
        entries = await journal_of(bus, command)
        logs = [entry for entry in entries if entry.type == "log"]
        assert len(logs) == (2 if code == "three" else 0)
        rounds = [entry.iterations for entry in entries if entry.type == "loop"]
        assert rounds == ([1, 2, 3, 7, 10] if code == "counting" else [])
        if not died():
            break
    assert deaths > 3
    assert all(question.asked_first_at for question in calm.asked)


async def test_a_call_is_first_asked_for_as_of_its_start_before_that_was_stored() -> None:
    """This shows the gateway that an executor was suspended in between."""
    bus, tools, command = MemoryBus(), MemoryTools(), make_command("three")
    await finish(command, make_dependencies(bus, MemoryPool(PROGRAMS), tools))
    starts = [each.ts for each in await journal_of(bus, command) if each.type == "tool_start"]
    asked = [each.asked_first_at for each in tools.asked]
    assert [each and each.timestamp() * 1000 for each in asked] == pytest.approx(
        starts, rel=0, abs=0.002
    )


def claimed_first_in_vain(asked: list[CallTool]) -> list[CallTool]:
    """Return the queries that wrongly claim to be the first with their key."""
    keys = [question.idempotency_key for question in asked]
    return [
        question
        for place, question in enumerate(asked)
        if question.asked_first_at and question.idempotency_key in keys[:place]
    ]


def shuffling_tools(seed: int) -> MemoryTools:
    """Build tools that answer after a different number of loop iterations each time."""
    chance = random.Random(seed)  # noqa: S311 - the same turns for the same seed

    async def slow(args: JsonObject) -> ToolOutcome:
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)
        return ToolOutcome(status="ok", result=args)

    return MemoryTools(dict.fromkeys(("api:a", "api:b", "api:c"), slow))


@pytest.mark.parametrize("code", list(PROGRAMS))
@pytest.mark.parametrize("reads", [(), ("api:a",), ALL_READ], ids=",".join)
async def test_a_run_survives_many_deaths_in_a_row(
    code: str,
    reads: Sequence[str],
) -> None:
    pool, bus, tools = MemoryPool(PROGRAMS), MemoryBus(), shuffling_tools(7)
    command = make_command(code, read_only_tools=reads)
    for life in range(50):
        mortal_bus, mortal_tools, died = crashing(bus, tools, 3 + life, life % 2 == 0)
        try:
            fact = await finish(command, make_dependencies(mortal_bus, pool, mortal_tools))
        except RuntimeError:
            assert died()
            continue
        assert fact.success
        assert set(tools.made.values()) <= {1, 3, 4}
        assert sum(tools.made.values()) == len(fact.task_results)
        return
    pytest.fail("no life was long enough")


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
    other: Callable[[ProgramApi, JsonObject], Awaitable[JsonValue]],
    node: str,
) -> None:
    bus, tools = MemoryBus(), MemoryTools()
    mortal_bus, mortal_tools, _ = crashing(bus, tools, 5, True)
    command = make_command("three")
    with pytest.raises(RuntimeError):
        await finish(command, make_dependencies(mortal_bus, MemoryPool(PROGRAMS), mortal_tools))
    made = dict(tools.made)

    fact = await finish(command, make_dependencies(bus, MemoryPool({"three": other}), tools))

    assert fact.error is not None
    assert (fact.error.kind, fact.error.node_id) == ("diverged", node)
    assert tools.made == made


async def test_the_time_of_a_dead_executor_counts() -> None:
    bus, pool = MemoryBus(), MemoryPool(PROGRAMS)
    mortal_bus, mortal_tools, _ = crashing(bus, MemoryTools(), 2, False)
    command = make_command("three")
    with pytest.raises(RuntimeError):
        await finish(command, make_dependencies(mortal_bus, pool, mortal_tools))

    tools = MemoryTools()
    deps = make_dependencies(bus, pool, tools)
    fact = await finish(command, replace(deps, now=lambda: deps.now() + 1000 * command.timeout_s))

    assert fact.error is not None
    assert fact.error.kind == "timeout"
    assert tools.asked == []
