"""Appends that a run waits for, and those made without anyone waiting."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import BusUnavailable, Fenced
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import TRACE_RECORDED
from pml_common.contracts.executor import CancelRun, RunWorkflow
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import CapabilityEnd, ToolEnd
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters import bus_journal
from pml_executor.application.active_runs import ActiveRuns, RunStopped
from pml_executor.domain import events
from pml_executor.domain.limits import RunLimits
from services.executor.tests.support.harness import (
    deliver,
    finish,
    journal_of,
    make_dependencies,
)
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools, answering
from services.executor.tests.support.reading import (
    PROGRAMS,
    READ,
    WRITE,
    Deaf,
    appends,
    reading,
)


@pytest.mark.parametrize(
    ("code", "budget"),
    [
        ("read", 1),
        ("ten reads", 1),
        ("write", 2),
        ("reads and a write", 2),
        ("writes", 4),
        ("at once", 2),
    ],
)
async def test_a_run_makes_no_more_appends_than_its_budget(code: str, budget: int) -> None:
    """One for each call that may change something, or that outcomes in no fixed order precede, and
    one for the end."""
    bus, command = MemoryBus(), reading(code)
    deps = make_dependencies(bus, MemoryPool(PROGRAMS), MemoryTools())
    fact = await finish(command, deps)
    assert fact.success
    assert len(await appends(bus, command)) == budget


async def test_the_end_of_a_run_holds_each_result_once() -> None:
    """Twice, a result of 100 KB would not fit into a message."""
    big = "x" * 100_000

    async def echoing(api: ProgramApi, args: JsonObject) -> JsonValue:
        return await api.call("n1", READ)

    async def large(_: JsonObject) -> ToolOutcome:
        return ToolOutcome(status="ok", result=big)

    bus, command = MemoryBus(), reading("echoing")
    pool = MemoryPool({"echoing": echoing})
    fact = await finish(command, make_dependencies(bus, pool, MemoryTools({READ: large})))
    assert (fact.result, [each.result for each in fact.task_results]) == (big, [big])
    ends = [each for each in fact.entries if isinstance(each, ToolEnd | CapabilityEnd)]
    assert [(each.success, each.result) for each in ends] == [(True, None)] * 2
    assert bus.broker.payloads == {}


async def test_a_call_that_only_reads_waits_for_no_append() -> None:
    bus, tools, command = MemoryBus(), MemoryTools(), reading("reads and a write")
    seen: dict[str, list[Sequence[str]]] = {READ: [], WRITE: []}

    def looking(tool: str) -> Callable[[JsonObject], Awaitable[ToolOutcome]]:
        async def look(_: JsonObject) -> ToolOutcome:
            seen[tool] += await appends(bus, command)
            return ToolOutcome(status="ok")

        return look

    tools.tools = {READ: looking(READ), WRITE: looking(WRITE)}
    await finish(command, make_dependencies(bus, MemoryPool(PROGRAMS), tools))
    read = ["tool_start", "tool_end"]
    before = ["capability_start", *read, *read, "tool_start"]
    assert seen == {READ: [before], WRITE: [before]}  # the last read was preceded by the write


async def test_what_nobody_waits_for_is_stored_soon() -> None:
    bus, tools, command = MemoryBus(), MemoryTools(), reading("ten reads")
    release = asyncio.Event()

    async def slow(args: JsonObject) -> ToolOutcome:
        if args["number"] == 4:
            await release.wait()
        return ToolOutcome(status="ok")

    tools.tools[READ] = slow
    deps = make_dependencies(bus, MemoryPool(PROGRAMS), tools, flush_after_s=0.001)
    running = asyncio.create_task(finish(command, deps))

    async def five_started() -> bool:
        return [e.type for e in await journal_of(bus, command)].count("tool_start") == 5

    await eventually(five_started)
    release.set()
    assert (await running).success


async def test_large_results_are_stored_as_they_come() -> None:
    """An append holds as much as one message, whatever nobody waits for."""
    bus, command = MemoryBus(), reading("ten reads")
    tools = MemoryTools({READ: answering("x" * 100_000)})
    assert (await finish(command, make_dependencies(bus, MemoryPool(PROGRAMS), tools))).success
    stored = await bus.history(command.scope, str(command.workflow_id), of=TRACE_RECORDED)
    sizes = [len(each.message.model_dump_json()) for each in stored]
    assert len(sizes) > 4
    assert max(sizes) < 256 * 1024


class Refusing(MemoryBus):
    """A bus that stores no append; `refused` is set at the first one."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error
        self.refused = asyncio.Event()

    async def publish(self, message: Message) -> int:
        self.refused.set()
        raise self._error


async def test_a_run_whose_entries_cannot_be_stored_ends_at_the_next_one() -> None:
    bus, command = Refusing(Fenced("journal", 0)), reading("ten reads")
    tools, going_on = MemoryTools(), asyncio.Event()

    async def slow(args: JsonObject) -> ToolOutcome:
        if args["number"] == 4:
            await going_on.wait()
        return ToolOutcome(status="ok")

    tools.tools[READ] = slow
    deps = make_dependencies(bus, MemoryPool(PROGRAMS), tools, flush_after_s=0.001)
    running = asyncio.ensure_future(finish(command, deps))
    await bus.refused.wait()
    going_on.set()
    with pytest.raises(Fenced):
        await running
    assert tools.made[READ] < 10


async def test_an_end_that_cannot_be_stored_is_not_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bus_journal, "_RETRY_DELAYS_S", (0.0,))
    bus, command = Refusing(BusUnavailable("no answer")), reading("read")
    with pytest.raises(BusUnavailable):
        await finish(command, make_dependencies(bus, MemoryPool(PROGRAMS), MemoryTools()))


async def test_a_run_that_is_stopped_stores_what_it_called() -> None:
    bus, command, begun = MemoryBus(), reading("ten reads"), asyncio.Event()

    async def slow(args: JsonObject) -> ToolOutcome:
        if args["number"] == 2:
            begun.set()
            await asyncio.Event().wait()
        return ToolOutcome(status="ok")

    deps = make_dependencies(bus, MemoryPool(PROGRAMS), MemoryTools({READ: slow}))

    async def handle(command: RunWorkflow) -> Sequence[Message]:
        return await deliver(command, deps)

    runs = ActiveRuns(handle)
    running = asyncio.ensure_future(runs.run(command))
    await begun.wait()
    cancel = CancelRun(
        scope=command.scope,
        command_id=command.command_id,
        workflow_id=command.workflow_id,
        run=command,
        why="mira cancelled it",
    )
    await runs.stopped(cancel)
    assert running.done()
    with pytest.raises(RunStopped):
        await running
    read = ["tool_start", "tool_end"]
    assert await appends(bus, command) == [["capability_start", *read, *read, "tool_start"]]


async def test_a_journal_is_closed_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_journal, "_CLOSES_WITHIN_S", 0.01)
    command = reading("read")
    journal = bus_journal.BusJournal(Deaf(MemoryBus()), command)
    journal.begin(events.run_started(command, 1.0))
    async with asyncio.timeout(PATIENCE_S):
        await journal.close()
    assert journal.unstored == 1


async def test_entries_count_for_the_run_before_they_are_stored() -> None:
    """The limit of a run is on all of them."""
    command = reading("ten reads")
    tools = MemoryTools({READ: answering("x" * 1000)})
    limits = RunLimits(max_journal_bytes=5000)
    deps = make_dependencies(MemoryBus(), MemoryPool(PROGRAMS), tools, limits)
    fact = await finish(command, deps)
    assert fact.error is not None
    assert fact.error.kind == "output_limit"
    assert len(fact.task_results) == 5
