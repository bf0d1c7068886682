"""Ends of a run before its program's end: limits, grants, and missing sandboxes."""

import asyncio
import re

import pytest
from pydantic import JsonValue

from pml_common.bus.errors import Retryable
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.domain.limits import RunLimits
from services.executor.tests.support.builders import capability, make_command
from services.executor.tests.support.harness import finish, make_dependencies
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools, answering


async def nothing(api: ProgramApi, args: JsonObject) -> JsonValue:
    return None


async def read_once(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await api.call("n1", "fs:read", {"path": "/x"})


async def test_a_tool_outside_the_grant_of_a_dry_run_ends_it_and_is_never_called() -> None:
    tools = MemoryTools()
    deps = make_dependencies(MemoryBus(), MemoryPool({"read": read_once}), tools)
    command = make_command("read", tools=["fs:stat"])
    grant = command.grant.model_copy(update={"dry_run": True})

    fact = await finish(command.model_copy(update={"grant": grant}), deps)

    assert fact.error is not None
    assert (fact.error.kind, fact.error.tool, fact.error.node_id) == ("denied", "fs:read", "n1")
    assert "fs:stat" in fact.error.message
    assert tools.asked == []
    assert fact.task_results == ()


async def test_a_run_calls_only_so_many_capabilities() -> None:
    async def eager(api: ProgramApi, args: JsonObject) -> JsonValue:
        return [await api.capability("n1", 0) for _ in range(4)]

    pool = MemoryPool({"eager": eager, "nothing": nothing})
    limits = RunLimits(max_capability_calls=3)
    deps = make_dependencies(MemoryBus(), pool, MemoryTools(), limits)
    fact = await finish(make_command("eager", injected=[capability("a:b", "nothing")]), deps)

    assert fact.error is not None
    assert (fact.error.kind, fact.error.node_id) == ("call_limit", "n1")
    assert fact.error.message == "the run called capabilities more than 3 times"
    assert len(fact.nested) == 3


async def test_a_refused_call_does_not_cut_off_those_under_way() -> None:
    async def both(api: ProgramApi, args: JsonObject) -> JsonValue:
        calls = (api.call("n1", "api:a"), api.call("n2", "cap:x"), api.call("n3", "api:b"))
        return list(await asyncio.gather(*calls))

    deps = make_dependencies(MemoryBus(), MemoryPool({"both": both}), MemoryTools())
    fact = await finish(make_command("both"), deps)

    assert fact.error is not None
    assert (fact.error.kind, fact.error.tool) == ("denied", "cap:x")
    assert [(task.tool, task.success) for task in fact.task_results] == [("api:a", True)]


async def test_a_grant_for_other_code_starts_nothing() -> None:
    pool = MemoryPool({"read": read_once})
    command = make_command("read")
    grant = command.grant.model_copy(update={"code_hash": "beef"})

    deps = make_dependencies(MemoryBus(), pool, MemoryTools())
    fact = await finish(command.model_copy(update={"grant": grant}), deps)

    assert fact.error is not None
    assert fact.error.kind == "denied"
    assert pool.leased == 0


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (RunLimits(max_tool_calls=2), "call_limit"),
        (RunLimits(max_journal_bytes=40), "output_limit"),
    ],
)
async def test_a_run_that_calls_too_much_is_stopped(
    limits: RunLimits,
    kind: str,
) -> None:
    async def greedy(api: ProgramApi, args: JsonObject) -> JsonValue:
        for i in range(10):
            await api.call("n1", "api:a", {"round": i})
        return None

    deps = make_dependencies(MemoryBus(), MemoryPool({"greedy": greedy}), MemoryTools(), limits)
    fact = await finish(make_command("greedy"), deps)

    assert fact.error is not None
    assert fact.error.kind == kind


async def test_a_run_that_logs_too_much_is_stopped() -> None:
    async def talk(api: ProgramApi, args: JsonObject) -> JsonValue:
        for _ in range(100):
            api.log("x" * 100)
        return None

    limits = RunLimits(max_message_bytes=1000)
    deps = make_dependencies(MemoryBus(), MemoryPool({"talk": talk}), MemoryTools(), limits)
    fact = await finish(make_command("talk"), deps)

    assert fact.error is not None
    assert fact.error.kind == "output_limit"
    assert re.fullmatch(
        r"the run logged 1\d{3} bytes, more than the 1000 allowed", fact.error.message
    )


async def test_a_run_that_reports_too_much_is_stopped() -> None:
    async def forge(api: ProgramApi, args: JsonObject) -> JsonValue:
        for index in range(100):
            api.round(f"l{index}")
        return None

    deps = make_dependencies(
        MemoryBus(), MemoryPool({"forge": forge}), MemoryTools(), RunLimits(max_message_bytes=1000)
    )
    fact = await finish(make_command("forge"), deps)

    assert fact.error is not None
    assert fact.error.kind == "output_limit"


async def test_an_answer_that_is_too_large_is_the_tools_failure() -> None:
    tools = MemoryTools({"fs:read": answering("x" * 2000)})
    limits = RunLimits(max_message_bytes=1000)
    deps = make_dependencies(MemoryBus(), MemoryPool({"read": read_once}), tools, limits)

    fact = await finish(make_command("read"), deps)

    assert fact.error is not None
    assert fact.error.kind == "tool_error"
    assert "2002 bytes" in fact.error.message


async def test_without_a_sandbox_the_command_is_tried_again() -> None:
    bus, pool = MemoryBus(), MemoryPool({"": nothing})
    pool.problem = "deno cannot be started"
    command = make_command("")

    with pytest.raises(Retryable, match="deno cannot be started"):
        await finish(command, make_dependencies(bus, pool, MemoryTools()))

    pool.problem = None
    assert (await finish(command, make_dependencies(bus, pool, MemoryTools()))).success


async def test_a_program_that_takes_too_long_ends_in_a_timeout() -> None:
    async def wait(api: ProgramApi, args: JsonObject) -> JsonValue:
        await asyncio.Event().wait()
        return None

    deps = make_dependencies(MemoryBus(), MemoryPool({"wait": wait}), MemoryTools())
    fact = await finish(make_command("wait", timeout_s=0.05), deps)  # waits: it is over

    assert fact.error is not None
    assert fact.error.kind == "timeout"
    assert "0.05 s" in fact.error.message
