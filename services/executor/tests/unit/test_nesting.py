"""Capabilities inside a run: its journal, its tree, and what no sandbox should send."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import UUID

import pytest
from pydantic import JsonValue

from pml_common.bus.memory import MemoryBus
from pml_common.bus.port import Bus
from pml_common.contracts import ids
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import BranchDecision, CapabilityEnd, CapabilityStart, TraceEvent
from pml_executor.adapters.memory_sandbox import CapabilityFailed, MemoryPool, ProgramApi
from pml_executor.adapters.memory_tools import MemoryTools, ending
from pml_executor.domain.capabilities import Nesting, injected
from pml_executor.domain.endings import Ending, RunEnded
from pml_executor.domain.journal import Diverged, RunJournal
from pml_executor.domain.protocol import Entered, Threw
from pml_executor.handlers.on_run_workflow import Executor
from pml_executor.ports import Tools
from services.executor.tests.nested import capability

MakeCommand = Callable[..., RunWorkflow]
MakeExecutor = Callable[..., Executor]
Finish = Callable[[RunWorkflow, Executor], Awaitable[RunFinished]]
JournalOf = Callable[[Bus, RunWorkflow | RunFinished], Awaitable[list[TraceEvent]]]
ShortLife = Callable[[MemoryBus, MemoryTools, int, bool], tuple[Bus, Tools, Callable[[], bool]]]
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
    """What does not depend on which of parallel calls came first."""
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
    make_command: MakeCommand,
    make_executor: MakeExecutor,
    finish: Finish,
    short_life: ShortLife,
    journal_of: JournalOf,
    after: bool,
) -> None:
    pool, calm = MemoryPool(PROGRAMS), MemoryTools()
    undisturbed = await finish(
        make_command("side by side", injected=BOTH), make_executor(MemoryBus(), pool, calm)
    )
    assert undisturbed.executed_path == ("n1", "n2")
    assert undisturbed.nested[0].executed_path == ("l1", "n1", "n2")
    deaths = 0
    for at in range(1, 100):
        bus, tools = MemoryBus(), unsteady_tools(at)
        command = make_command("side by side", injected=BOTH)
        mortal_bus, mortal_tools, died = short_life(bus, tools, at, after)
        with suppress(RuntimeError):
            await finish(command, make_executor(mortal_bus, pool, mortal_tools))
        deaths += died()
        fact = await finish(command, make_executor(bus, pool, tools))

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


async def test_decisions_of_a_capability_are_its_own(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    async def program(api: ProgramApi, args: JsonObject) -> JsonValue:
        api.decide("d1", False)
        return await api.capability("n1", 1)

    pool = MemoryPool({**PROGRAMS, "program": program})
    fact = await finish(
        make_command("program", injected=BOTH), make_executor(MemoryBus(), pool, MemoryTools())
    )
    assert fact.decisions == (BranchDecision(node_id="d1", outcome="false"),)
    assert fact.nested[0].decisions == (BranchDecision(node_id="d1", outcome="true"),)


async def test_a_capability_that_nobody_waited_for_is_told_as_unknown(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    async def careless(api: ProgramApi, args: JsonObject) -> JsonValue:
        left = asyncio.ensure_future(api.capability("n1", 1))
        await asyncio.sleep(0)
        return left.done()

    pool = MemoryPool({**PROGRAMS, "careless": careless})
    fact = await finish(
        make_command("careless", injected=BOTH), make_executor(MemoryBus(), pool, MemoryTools())
    )
    assert (fact.success, len(fact.task_results)) == (True, 1)
    (nested,) = fact.nested
    assert nested.error is not None
    assert nested.error.kind == "outcome_unknown"
    assert nested.error.message == "the run ended before capability a:inner did"


async def test_a_tools_error_goes_up_through_the_capabilities(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    async def careful(api: ProgramApi, args: JsonObject) -> JsonValue:
        with suppress(CapabilityFailed):
            await api.capability("n1", 1)
        return await api.capability("n2", 0, {"i": 1})

    pool = MemoryPool({**PROGRAMS, "careful": careful})
    tools = MemoryTools({"api:a": ending(ToolOutcome(status="tool_error", message="no disk"))})
    fact = await finish(
        make_command("careful", injected=BOTH), make_executor(MemoryBus(), pool, tools)
    )
    assert fact.error is not None
    assert (fact.error.kind, fact.error.tool) == ("tool_error", "api:a")
    assert fact.error.message == "a:outer: a:inner: no disk"
    assert fact.error.node_id == "n2/n1/n1"
    assert [one.success for one in fact.nested] == [False, False, False]


def test_each_capability_has_the_names_it_is_called_by_and_the_shared_ones() -> None:
    first, second = capability("a:b_c", "1"), capability("a:b-c", "2", "old_name", "a_b_c_x")
    suffix = second.capability_id.hex[-4:]
    told = {one.name: set(one.called_as) for one in injected([first, second])}
    assert told == {
        "a:b_c": {"a_b_c", "a:b_c"},
        "a:b-c": {"old_name", "a_b_c_x", f"a_b_c_{suffix}", "a:b-c"},
    }
    # What the analysis resolved goes before what the names of now would mean.
    swapped = second.model_copy(update={"called_as": ("a_b_c",)})
    told = {one.name: set(one.called_as) for one in injected([first, swapped])}
    assert "a_b_c" in told["a:b-c"] - told["a:b_c"]


def _entered(number: int = 0, within: int | None = None, index: int = 0) -> Entered:
    return Entered(
        kind="entered", id=number, within=within, node="n1", capability=index, args={"x": 1}
    )


def _threw(**more: object) -> Threw:
    fields = {"kind": "threw", "call": None, "line": None, "column": None, "name": "Error"}
    return Threw.model_validate({**fields, "message": "no", **more})


FORGED: dict[str, Callable[[Nesting], object]] = {
    "a number twice": lambda nesting: nesting.enter(_entered(0), 2.0),
    "no caller": lambda nesting: nesting.enter(_entered(7, within=9), 2.0),
    "a capability after all": lambda nesting: nesting.enter(_entered(7, index=2), 2.0),
    "a capability before all": lambda nesting: nesting.enter(_entered(7, index=-1), 2.0),
    "a fourth level": lambda nesting: nesting.enter(_entered(7, within=2), 2.0),
    "an end without a beginning": lambda nesting: nesting.leave(9, Ending(), 2.0),
    "a note from nowhere": lambda nesting: nesting.trace_of(9),
    "a place in no text": lambda nesting: nesting.failure(_threw(module=2), None),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_no_sandbox_sends_ends_the_run(
    make_command: MakeCommand, forged: Callable[[Nesting], object]
) -> None:
    nesting = Nesting(make_command("", injected=BOTH), RunJournal())
    for number, within in ((0, None), (1, 0), (2, 1)):
        assert nesting.enter(_entered(number, within), 1.0) is not None
    with pytest.raises(RunEnded, match="forged"):
        forged(nesting)


def test_an_error_that_a_capability_left_behind_has_its_name_and_no_place(
    make_command: MakeCommand,
) -> None:
    nesting = Nesting(make_command("", injected=BOTH), RunJournal())
    error = nesting.failure(_threw(module=1, line=1, column=2), None)
    assert (error.message, error.line, error.column) == ("a:inner, line 1: no", None, None)
    unknown = nesting.failure(_threw(capability=5), None)
    assert unknown.message == "no"


def test_a_replay_that_calls_another_capability_or_none_diverges(
    make_command: MakeCommand,
) -> None:
    command = make_command("", injected=BOTH)
    first = Nesting(command, RunJournal())
    start = first.enter(_entered(), 1.0)
    end = first.leave(0, Ending(result=1), 3.0)
    assert start is not None
    assert end is not None
    assert start.trace_id == ids.nested_trace_id(command.workflow_id, "n1", 0)
    assert (end.duration_ms, end.parent_trace_id) == (2.0, ids.root_trace_id(command.workflow_id))
    root = CapabilityStart(trace_id=UUID(int=1), ts=0.0, capability_id=UUID(int=1), args={})
    recorded = [root, start, end]

    journal = RunJournal(recorded)
    assert not journal.closed
    same = Nesting(command, journal)
    journal.due()
    assert journal.awaited() is not None
    with pytest.raises(Diverged, match=r"n1 \(time 1\) \(a capability\)"):
        journal.complete()
    assert same.enter(_entered(), 9.0) is None
    with pytest.raises(Diverged, match="the end of a capability"):
        journal.complete()
    assert same.leave(0, Ending(result=1), 9.0) is None
    journal.complete()

    with pytest.raises(Diverged, match="calls another capability"):
        Nesting(command, RunJournal(recorded)).enter(_entered(index=1), 9.0)
