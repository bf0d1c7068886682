"""Several calls that wait for a person at once: one question, and what follows from its answer."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from pydantic import JsonValue

from pml_common.bus.memory import MemoryBus
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_executor.adapters.memory_sandbox import MemoryPool, MemorySandbox, ProgramApi
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.application import waiting as waits_for
from pml_executor.entrypoints.bus.on_run_workflow import RunDependencies
from services.executor.tests.asking import agreed, agreed_to_rest, parked, waiting

MakeCommand = Callable[..., RunWorkflow]
MakeExecutor = Callable[..., RunDependencies]
Finish = Callable[[RunWorkflow, RunDependencies], Awaitable[RunFinished]]
WANTED = "mail:send"


async def to_all(api: ProgramApi, args: JsonObject) -> JsonValue:
    """200 mails at once, of which none was seen beforehand."""
    return len(await asyncio.gather(*(api.call(None, WANTED, {"to": n}) for n in range(200))))


async def returns_at_once(api: ProgramApi, args: JsonObject) -> JsonValue:
    mail = asyncio.ensure_future(api.call(None, WANTED))
    await asyncio.wait({mail}, timeout=0)
    return "done"


async def throws_at_once(api: ProgramApi, args: JsonObject) -> JsonValue:
    mail = asyncio.ensure_future(api.call(None, WANTED))
    await asyncio.wait({mail}, timeout=0)
    raise ValueError("the program's own")


async def all_the_time(api: ProgramApi, args: JsonObject) -> JsonValue:
    mail = asyncio.ensure_future(api.call(None, WANTED))
    while not mail.done():
        api.log("still busy")
        await asyncio.sleep(0)
    return "done"


async def in_two_steps(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Each of two mails follows from a call of its own, and both beside a third."""

    async def one(n: int) -> JsonValue:
        await api.call("n1", "api:a", {"n": n})
        return await api.call(None, WANTED, {"to": n})

    return list(await asyncio.gather(one(1), one(2), api.call(None, WANTED, {"to": 0})))


POOL = {
    "all": to_all,
    "returns": returns_at_once,
    "throws": throws_at_once,
    "busy": all_the_time,
    "steps": in_two_steps,
}


async def test_calls_that_wait_together_are_one_question_and_each_is_made_once(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    tools, command = MemoryTools(), make_command("all")
    executor = make_executor(MemoryBus(), MemoryPool(POOL), tools)
    fact = await parked(command, executor)
    assert [call.args for call in waiting(fact)] == [{"to": n} for n in range(200)]
    assert [call.occurrence for call in waiting(fact)] == list(range(200))
    assert {call.why for call in waiting(fact)} == {fact.wanted.why}
    assert tools.asked == []
    assert fact.task_results == ()

    end = await finish(agreed(fact, command), executor)
    assert (end.result, tools.made) == (200, {WANTED: 200})
    assert len({query.idempotency_key for query in tools.asked}) == 200


async def test_agreement_to_the_first_leaves_the_rest_to_be_asked_about(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    tools, command = MemoryTools(), make_command("all")
    executor = make_executor(MemoryBus(), MemoryPool(POOL), tools)
    first = await parked(command, executor)
    command = agreed(first, command, first.wanted)
    second = await parked(command, executor)
    assert waiting(second) == waiting(first)[1:]
    assert tools.made == {WANTED: 1}
    assert [(each.node_id, each.args) for each in second.task_results] == [
        ("dyn:mail:send", {"to": 0})
    ]
    assert (await finish(agreed(second, command), executor)).result == 200
    assert tools.made == {WANTED: 200}


async def test_agreement_to_all_further_calls_of_a_node_is_one_answer_for_all(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    async def two_places(api: ProgramApi, args: JsonObject) -> JsonValue:
        await asyncio.gather(*(api.call("n1", WANTED, {"to": n}) for n in range(9)))
        return await api.call("n2", WANTED, {"to": 0})

    tools, command = MemoryTools(), make_command("places")
    executor = make_executor(MemoryBus(), MemoryPool({"places": two_places}), tools)
    first = await parked(command, executor)
    assert len(waiting(first)) == 9
    command = agreed_to_rest(first, command)
    other = await parked(command, executor)
    assert [(call.node_id, call.args) for call in waiting(other)] == [("n2", {"to": 0})]
    assert tools.made == {WANTED: 9}
    assert (await finish(agreed(other, command), executor)).success


async def test_a_question_is_about_the_calls_that_wait_at_that_moment(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish
) -> None:
    """What a person agrees to does not depend on how later calls come about."""
    tools, command = MemoryTools(), make_command("steps")
    executor = make_executor(MemoryBus(), MemoryPool(POOL), tools)
    asked = list[JsonObject]()
    while True:
        fact = await parked(command, executor)
        asked += [call.args for call in waiting(fact)]
        command = agreed(fact, command)
        if len(asked) == 3:
            break
    assert sorted(asked, key=str) == [{"to": 0}, {"to": 1}, {"to": 2}]
    assert tools.made["api:a"] == 2
    assert (await finish(command, executor)).result == [{"to": 1}, {"to": 2}, {"to": 0}]
    assert tools.made == {"api:a": 2, WANTED: 3}


@pytest.mark.parametrize("code", ["returns", "throws"])
async def test_a_program_that_ends_without_its_call_waits_for_a_person_all_the_same(
    make_command: MakeCommand, make_executor: MakeExecutor, finish: Finish, code: str
) -> None:
    tools, command = MemoryTools(), make_command(code)
    executor = make_executor(MemoryBus(), MemoryPool(POOL), tools)
    fact = await parked(command, executor)
    assert (waiting(fact), tools.asked) == ((fact.wanted,), [])
    end = await finish(agreed(fact, command), executor)
    assert end.success == (code == "returns")
    assert tools.made == {WANTED: 1}


def keeps_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program comes to the end of what it does, nor is one waited for long that is silent."""

    def ignore(_: MemorySandbox) -> None: ...

    monkeypatch.setattr(MemorySandbox, "pause", ignore)
    monkeypatch.setattr(waits_for, "_PAUSE_S", 0.01)


@pytest.mark.parametrize(
    ("code", "at_most_s", "calls"), [("all", 600.0, 200), ("busy", 0.01, 1), ("all", 0.0, 1)]
)
async def test_a_program_that_keeps_its_thread_busy_parks_within_the_bound(
    make_command: MakeCommand,
    make_executor: MakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    at_most_s: float,
    calls: int,
) -> None:
    """It has so long for all that it tells, and less where it tells nothing."""
    keeps_busy(monkeypatch)
    monkeypatch.setattr(waits_for, "_PAUSE_AT_MOST_S", at_most_s)
    tools, command = MemoryTools(), make_command(code, timeout_s=600)
    fact = await parked(command, make_executor(MemoryBus(), MemoryPool(POOL), tools))
    assert len(waiting(fact)) == calls
    assert tools.asked == []


async def test_the_bound_holds_too_where_the_gateway_wants_a_person_to_be_asked(
    make_command: MakeCommand, make_executor: MakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the program was waited for without one when its call was made."""
    keeps_busy(monkeypatch)

    class Asking(MemoryTools):
        async def call(self, query: CallTool) -> ToolOutcome:
            await asyncio.sleep(0)
            return ToolOutcome(status="ask", message="the policy has changed")

    command = make_command("all", tools=[WANTED], timeout_s=600)
    fact = await parked(command, make_executor(MemoryBus(), MemoryPool(POOL), Asking()))
    assert {call.why for call in waiting(fact)} == {"the policy has changed"}
