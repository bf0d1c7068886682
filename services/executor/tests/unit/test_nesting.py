"""Capabilities inside a run: journal, tree of runs, and forged messages."""

import asyncio
import random
from contextlib import suppress

import pytest
from pydantic import JsonValue

from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import BranchDecision, CapabilityEnd, CapabilityStart
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.builders import capability, make_command
from services.executor.tests.support.fakes import crashing
from services.executor.tests.support.harness import finish, journal_of, make_dependencies
from services.executor.tests.support.memory_sandbox import CapabilityFailed, MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools, ending

OUTER, INNER = capability("a:outer", "outer"), capability("a:inner", "inner")
BOTH = (OUTER, INNER)


async def inner(api: ProgramApi, args: JsonObject) -> JsonValue:
    value = await api.call("n1", "api:a", args)
    api.log("inside")
    return [value, await api.call("n2", "api:b", args)] if api.decide("d1", True) else None


async def outer(api: ProgramApi, args: JsonObject) -> JsonValue:
    api.round("l1")
    first = await api.capability("n1", 1, {"from": args["i"]})
    return [first, await api.call("n2", "api:c", args)]


async def side_by_side(api: ProgramApi, args: JsonObject) -> JsonValue:
    calls = (api.capability("n1", 0, {"i": i}) for i in range(3))
    both = list(await asyncio.gather(*calls))
    return [both, await api.capability("n2", 1, {"last": True})]


PROGRAMS = {"outer": outer, "inner": inner, "side by side": side_by_side}


def _shape(fact: RunFinished) -> tuple[object, ...]:
    """Return the parts of a result that do not depend on the order of parallel calls."""
    runs = sorted((one.node_id, one.name, one.success, one.executed_path) for one in fact.nested)
    tasks = sorted((task.node_id, task.tool, str(task.args)) for task in fact.task_results)
    return fact.success, fact.executed_path, runs, tasks


def _tree_is_whole(fact: RunFinished) -> None:
    parents = {one.trace_id: one for one in fact.nested}
    assert len(parents) == len(fact.nested)
    for one in fact.nested:
        assert one.parent_trace_id in {fact.trace_id, *parents}
    for task in fact.task_results:
        caller = parents[task.parent_trace_id or fact.trace_id]
        assert task.node_id.startswith(f"{caller.node_id}/")
    keys = [(task.node_id, task.occurrence) for task in fact.task_results]
    assert len(set(keys)) == len(keys)


def unsteady_tools(seed: int) -> MemoryTools:
    chance = random.Random(seed)  # noqa: S311 - the same turns for the same seed

    async def slow(args: JsonObject) -> ToolOutcome:
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)
        return ToolOutcome(status="ok", result=args)

    return MemoryTools(dict.fromkeys(("api:a", "api:b", "api:c"), slow))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_wherever_an_executor_dies_the_tree_is_whole_and_no_call_is_repeated(
    after: bool,
) -> None:
    pool, calm = MemoryPool(PROGRAMS), MemoryTools()
    undisturbed = await finish(
        make_command("side by side", injected=BOTH), make_dependencies(MemoryBus(), pool, calm)
    )
    assert undisturbed.executed_path == ("n1", "n2")
    assert undisturbed.nested[0].executed_path == ("l1", "n1", "n2")
    deaths = 0
    for at in range(1, 100):
        bus, tools = MemoryBus(), unsteady_tools(at)
        command = make_command("side by side", injected=BOTH)
        mortal_bus, mortal_tools, died = crashing(bus, tools, at, after)
        with suppress(RuntimeError):
            await finish(command, make_dependencies(mortal_bus, pool, mortal_tools))
        deaths += died()
        fact = await finish(command, make_dependencies(bus, pool, tools))

        assert _shape(fact) == _shape(undisturbed)
        _tree_is_whole(fact)
        assert tools.made == calm.made
        entries = await journal_of(bus, command)
        for kind in (CapabilityStart, CapabilityEnd):
            traces = [entry.trace_id for entry in entries if isinstance(entry, kind)]
            assert len(traces) == len(set(traces)) == 8
        if not died():
            break
    assert deaths > 5


async def test_decisions_of_a_capability_are_its_own() -> None:
    async def program(api: ProgramApi, args: JsonObject) -> JsonValue:
        api.decide("d1", False)
        return await api.capability("n1", 1)

    pool = MemoryPool({**PROGRAMS, "program": program})
    fact = await finish(
        make_command("program", injected=BOTH), make_dependencies(MemoryBus(), pool, MemoryTools())
    )
    assert fact.decisions == (BranchDecision(node_id="d1", outcome="false"),)
    assert fact.nested[0].decisions == (BranchDecision(node_id="d1", outcome="true"),)


async def test_a_capability_that_nobody_waited_for_is_told_as_unknown() -> None:
    async def careless(api: ProgramApi, args: JsonObject) -> JsonValue:
        left = asyncio.ensure_future(api.capability("n1", 1))
        await asyncio.sleep(0)
        return left.done()

    pool = MemoryPool({**PROGRAMS, "careless": careless})
    fact = await finish(
        make_command("careless", injected=BOTH), make_dependencies(MemoryBus(), pool, MemoryTools())
    )
    assert (fact.success, len(fact.task_results)) == (False, 1)
    (nested,) = fact.nested
    assert nested.error is not None
    assert nested.error.kind == "outcome_unknown"
    assert nested.error.message == "the run ended before capability a:inner did"


async def test_a_tools_error_goes_up_through_the_capabilities() -> None:
    async def careful(api: ProgramApi, args: JsonObject) -> JsonValue:
        with suppress(CapabilityFailed):
            await api.capability("n1", 1)
        return await api.capability("n2", 0, {"i": 1})

    pool = MemoryPool({**PROGRAMS, "careful": careful})
    tools = MemoryTools({"api:a": ending(ToolOutcome(status="tool_error", message="no disk"))})
    fact = await finish(
        make_command("careful", injected=BOTH), make_dependencies(MemoryBus(), pool, tools)
    )
    assert fact.error is not None
    assert (fact.error.kind, fact.error.tool) == ("tool_error", "api:a")
    assert fact.error.message == "a:outer: a:inner: no disk"
    assert fact.error.node_id == "n2/n1/n1"
    assert [one.success for one in fact.nested] == [False, False, False]
