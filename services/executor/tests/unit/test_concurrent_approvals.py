"""Several calls that wait for approval at once: one request, and the effects of its answer."""

import asyncio

import pytest
from pydantic import JsonValue

from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.application import pending_calls
from services.executor.tests.support.builders import agreed, agreed_to_rest, make_command, waiting
from services.executor.tests.support.harness import finish, make_dependencies, parked
from services.executor.tests.support.memory_sandbox import MemoryPool, MemorySandbox, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools

WANTED = "mail:send"


async def to_all(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Send 200 mails at once, none of them found by the analysis."""
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
    """Send two mails, each after a call of its own, and a third in parallel."""

    async def one(n: int) -> JsonValue:
        await api.call("n1", "api:a", {"n": n})
        return await api.call(None, WANTED, {"to": n})

    return list(await asyncio.gather(one(1), one(2), api.call(None, WANTED, {"to": 0})))


POOL = {
    "all": to_all,
    "Promise.race": returns_at_once,
    "throws": throws_at_once,
    "busy": all_the_time,
    "steps": in_two_steps,
}


async def test_calls_that_wait_together_are_one_question_and_each_is_made_once() -> None:
    tools, command = MemoryTools(), make_command("all")
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), tools)
    fact = await parked(command, deps)
    assert [call.args for call in waiting(fact)] == [{"to": n} for n in range(200)]
    assert [call.occurrence for call in waiting(fact)] == list(range(200))
    assert {call.why for call in waiting(fact)} == {fact.wanted.why}
    assert tools.asked == []
    assert fact.task_results == ()

    end = await finish(agreed(fact, command), deps)
    assert (end.result, tools.made) == (200, {WANTED: 200})
    assert len({query.idempotency_key for query in tools.asked}) == 200


async def test_agreement_to_the_first_leaves_the_rest_to_be_asked_about() -> None:
    tools, command = MemoryTools(), make_command("all")
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), tools)
    first = await parked(command, deps)
    command = agreed(first, command, first.wanted)
    second = await parked(command, deps)
    assert waiting(second) == waiting(first)[1:]
    assert tools.made == {WANTED: 1}
    assert [(each.node_id, each.args) for each in second.task_results] == [
        ("dyn:mail:send", {"to": 0})
    ]
    assert (await finish(agreed(second, command), deps)).result == 200
    assert tools.made == {WANTED: 200}


async def test_agreement_to_all_further_calls_of_a_node_is_one_answer_for_all() -> None:
    async def two_places(api: ProgramApi, args: JsonObject) -> JsonValue:
        await asyncio.gather(*(api.call("n1", WANTED, {"to": n}) for n in range(9)))
        return await api.call("n2", WANTED, {"to": 0})

    tools, command = MemoryTools(), make_command("places")
    deps = make_dependencies(MemoryBus(), MemoryPool({"places": two_places}), tools)
    first = await parked(command, deps)
    assert len(waiting(first)) == 9
    command = agreed_to_rest(first, command)
    other = await parked(command, deps)
    assert [(call.node_id, call.args) for call in waiting(other)] == [("n2", {"to": 0})]
    assert tools.made == {WANTED: 9}
    assert (await finish(agreed(other, command), deps)).success


async def test_a_question_is_about_the_calls_that_wait_at_that_moment() -> None:
    """An approval does not depend on the origin of later calls."""
    tools, command = MemoryTools(), make_command("steps")
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), tools)
    asked = list[JsonObject]()
    while True:
        fact = await parked(command, deps)
        asked += [call.args for call in waiting(fact)]
        command = agreed(fact, command)
        if len(asked) == 3:
            break
    assert sorted(asked, key=str) == [{"to": 0}, {"to": 1}, {"to": 2}]
    assert tools.made["api:a"] == 2
    assert (await finish(command, deps)).result == [{"to": 1}, {"to": 2}, {"to": 0}]
    assert tools.made == {"api:a": 2, WANTED: 3}


@pytest.mark.parametrize("code", ["Promise.race", "throws"])
async def test_a_program_that_ends_without_its_call_waits_for_a_person_all_the_same(
    code: str,
) -> None:
    tools, command = MemoryTools(), make_command(code)
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), tools)
    fact = await parked(command, deps)
    assert (waiting(fact), tools.asked) == ((fact.wanted,), [])
    end = await finish(agreed(fact, command), deps)
    assert end.success == (code != "throws")
    assert tools.made == {WANTED: 1}


def keeps_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep programs from reporting a pause, and shorten the wait for a silent one."""

    def ignore(_: MemorySandbox) -> None: ...

    monkeypatch.setattr(MemorySandbox, "pause", ignore)
    monkeypatch.setattr(pending_calls, "_PAUSE_S", 0.01)


@pytest.mark.parametrize(
    ("code", "at_most_s", "calls"), [("all", 600.0, 200), ("busy", 0.01, 1), ("all", 0.0, 1)]
)
async def test_a_program_that_keeps_its_thread_busy_parks_within_the_bound(
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    at_most_s: float,
    calls: int,
) -> None:
    """The bound is longer for a program that sends messages than for a silent one."""
    keeps_busy(monkeypatch)
    monkeypatch.setattr(pending_calls, "_MAX_PAUSE_S", at_most_s)
    tools, command = MemoryTools(), make_command(code, timeout_s=600)
    fact = await parked(command, make_dependencies(MemoryBus(), MemoryPool(POOL), tools))
    assert len(waiting(fact)) == calls
    assert tools.asked == []


async def test_the_bound_holds_too_where_the_gateway_wants_a_person_to_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It applies from the gateway's answer on; the wait began without a bound."""
    keeps_busy(monkeypatch)

    class Asking(MemoryTools):
        async def call(self, query: CallTool) -> ToolOutcome:
            await asyncio.sleep(0)
            return ToolOutcome(status="ask", message="the policy has changed")

    command = make_command("all", tools=[WANTED], timeout_s=600)
    fact = await parked(command, make_dependencies(MemoryBus(), MemoryPool(POOL), Asking()))
    assert {call.why for call in waiting(fact)} == {"the policy has changed"}
