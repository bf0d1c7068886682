"""One run from command to event, on fakes."""

import asyncio

import pytest
from pydantic import JsonValue

from pml_common.contracts import ids
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import BranchDecision
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import GatewayUnreachable
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import finish, journal_of, make_dependencies
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi, ToolFailed
from services.executor.tests.support.memory_tools import MemoryTools, answering, ending


async def ensure(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Read the file if it exists, else create it and write."""
    path: JsonObject = {"path": args["path"]}
    file = await api.call("n1", "fs:stat", path)
    if api.decide("d1", isinstance(file, dict) and bool(file["exists"])):
        return await api.call("n2", "fs:read", path)
    await api.call("n3", "fs:create", path)
    await api.call("n4", "fs:write", {**path, "content": ""})
    return None


async def nothing(api: ProgramApi, args: JsonObject) -> JsonValue:
    return None


async def read_once(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await api.call("n1", "fs:read", {"path": "/x"})


@pytest.mark.parametrize(
    ("exists", "path", "outcome", "result"),
    [(True, ("n1", "d1", "n2"), "true", "hello"), (False, ("n1", "d1", "n3", "n4"), "false", None)],
)
async def test_both_branches_of_the_example_are_told_apart(
    exists: bool,
    path: tuple[str, ...],
    outcome: str,
    result: JsonValue,
) -> None:
    tools = MemoryTools({"fs:stat": answering({"exists": exists}), "fs:read": answering("hello")})
    deps = make_dependencies(MemoryBus(), MemoryPool({"ensure": ensure}), tools)

    fact = await finish(make_command("ensure", {"path": "/x"}), deps)

    assert (fact.success, fact.result, fact.error) == (True, result, None)
    assert fact.executed_path == path
    assert fact.decisions == (BranchDecision(node_id="d1", outcome=outcome),)
    assert fact.task_results[0].tool == "fs:stat"
    assert all(task.success for task in fact.task_results)


async def test_a_call_is_stored_before_it_is_made_and_its_end_before_the_next_one() -> None:
    bus, tools = MemoryBus(), MemoryTools()
    command = make_command("watch")
    seen: list[list[str]] = []

    async def look(_: JsonObject) -> ToolOutcome:
        seen.append([entry.type for entry in await journal_of(bus, command)])
        return ToolOutcome(status="ok")

    async def watch(api: ProgramApi, args: JsonObject) -> JsonValue:
        await api.call("n1", "fs:read")
        await api.call("n2", "fs:read")
        return None

    tools.tools["fs:read"] = look
    await finish(command, make_dependencies(bus, MemoryPool({"watch": watch}), tools))

    started = ["capability_start", "tool_start"]
    assert seen == [started, [*started, "tool_end", "tool_start"]]
    assert [e.type for e in await journal_of(bus, command)][-1] == "capability_end"


async def test_a_run_handled_twice_states_the_same_fact_and_calls_nothing_again() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool({"ensure": ensure})
    tools.tools["fs:stat"] = answering({"exists": False})
    command = make_command("ensure", {"path": "/x"})

    first = await finish(command, make_dependencies(bus, pool, tools))
    second = await finish(command, make_dependencies(bus, pool, tools))

    assert first == second
    assert first.event_id == ids.effect_id(command.workflow_id, "run-finished")
    assert pool.leased == 1
    assert tools.made == {"fs:stat": 1, "fs:create": 1, "fs:write": 1}


async def test_a_tool_error_can_be_caught() -> None:
    async def careful(api: ProgramApi, args: JsonObject) -> JsonValue:
        try:
            return await api.call("n1", "fs:read")
        except ToolFailed as error:
            return f"caught: {error}"

    tools = MemoryTools({"fs:read": ending(ToolOutcome(status="tool_error", message="no file"))})
    fact = await finish(
        make_command("careful"),
        make_dependencies(MemoryBus(), MemoryPool({"careful": careful}), tools),
    )

    assert (fact.success, fact.result) == (True, "caught: no file")
    assert fact.task_results[0].error is not None
    assert not fact.task_results[0].success


@pytest.mark.parametrize(
    ("outcome", "kind", "message"),
    [
        (ToolOutcome(status="tool_error", message="no such file"), "tool_error", "no such file"),
        (ToolOutcome(status="timeout"), "tool_error", "fs:read did not answer in time"),
        (ToolOutcome(status="refused", message="not today"), "denied", "not today"),
        (ToolOutcome(status="unknown", message="who knows"), "outcome_unknown", "who knows"),
    ],
)
async def test_an_escaping_tool_error_names_tool_node_and_arguments(
    outcome: ToolOutcome,
    kind: str,
    message: str,
) -> None:
    tools = MemoryTools({"fs:read": ending(outcome)})
    deps = make_dependencies(MemoryBus(), MemoryPool({"read": read_once}), tools)

    fact = await finish(make_command("read"), deps)

    assert not fact.success
    assert fact.error is not None
    assert (fact.error.kind, fact.error.message) == (kind, message)
    assert (fact.error.tool, fact.error.node_id) == ("fs:read", "n1")
    assert fact.error.arguments == {"path": "/x"}


async def test_a_repeatable_tool_of_unknown_outcome_is_called_again_under_another_key() -> None:
    outcomes = [ToolOutcome(status="unknown"), ToolOutcome(status="ok", result="at last")]

    async def flaky(_: JsonObject) -> ToolOutcome:
        return outcomes.pop(0)

    tools = MemoryTools({"fs:read": flaky})
    deps = make_dependencies(MemoryBus(), MemoryPool({"read": read_once}), tools)

    fact = await finish(make_command("read", repeatable_tools=["fs:read"]), deps)

    assert (fact.success, fact.result) == (True, "at last")
    assert len({query.idempotency_key for query in tools.asked}) == 2


@pytest.mark.parametrize(
    "second",
    [
        ToolOutcome(status="refused", message="its server does not list it"),
        ToolOutcome(status="timeout", message="nothing was called"),
        ToolOutcome(status="unknown", message="nobody knows"),
        GatewayUnreachable("the gateway cannot be reached"),
    ],
)
async def test_a_first_outcome_that_is_unknown_stands_where_the_second_tells_nothing(
    second: ToolOutcome | GatewayUnreachable,
) -> None:
    outcomes = [ToolOutcome(status="unknown", message="it closed the connection"), second]

    async def flaky(_: JsonObject) -> ToolOutcome:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    tools = MemoryTools({"fs:read": flaky})
    deps = make_dependencies(MemoryBus(), MemoryPool({"read": read_once}), tools)
    fact = await finish(make_command("read", repeatable_tools=["fs:read"]), deps)
    assert fact.error is not None
    assert (fact.error.kind, fact.error.message) == ("outcome_unknown", "it closed the connection")


async def test_an_unreachable_gateway_is_named() -> None:
    class Nobody(MemoryTools):
        async def call(self, query: object) -> ToolOutcome:
            raise GatewayUnreachable("the gateway cannot be reached")

    deps = make_dependencies(MemoryBus(), MemoryPool({"read": read_once}), Nobody())
    fact = await finish(make_command("read"), deps)

    assert fact.error is not None
    assert (fact.error.kind, fact.error.tool) == ("internal", "fs:read")
    assert fact.task_results[0].error is not None
    assert fact.task_results[0].error.kind == "outcome_unknown"


@pytest.mark.parametrize("code", ["careless", "Promise.race of the careless"])
async def test_a_call_that_nobody_awaits_is_finished_before_the_run_is(code: str) -> None:
    async def careless(api: ProgramApi, args: JsonObject) -> JsonValue:
        calls = {asyncio.ensure_future(api.call(f"n{i}", "api:a", {"i": i})) for i in range(3)}
        await asyncio.sleep(0)
        return len(calls)

    bus, tools = MemoryBus(), MemoryTools()
    command = make_command(code)
    fact = await finish(command, make_dependencies(bus, MemoryPool({code: careless}), tools))

    assert (fact.success, fact.result) == ((False, None) if code == "careless" else (True, 3))
    if code == "careless":
        assert fact.error is not None
        assert (fact.error.kind, fact.error.node_id) == ("user_error", "n0")
        assert "api:a (n0), api:a (n1), api:a (n2)" in fact.error.message
    assert [task.success for task in fact.task_results] == [True, True, True]


async def test_logs_and_branches_keep_their_order_in_the_journal() -> None:
    async def chatty(api: ProgramApi, args: JsonObject) -> JsonValue:
        api.log("before")
        api.decide("d1", True)
        await api.call("n1", "api:a")
        api.log("after")
        return None

    bus = MemoryBus()
    command = make_command("chatty")
    await finish(command, make_dependencies(bus, MemoryPool({"chatty": chatty}), MemoryTools()))

    assert [entry.type for entry in await journal_of(bus, command)] == [
        "capability_start",
        "log",
        "decision",
        "tool_start",
        "tool_end",
        "log",
        "capability_end",
    ]
