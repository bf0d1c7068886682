"""Dry runs: mocks instead of calls, the same ones in every replay."""

from contextlib import suppress

from pydantic import JsonValue

from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import ToolEnd
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.fakes import crashing
from services.executor.tests.support.harness import finish, journal_of, make_dependencies
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools

MOCKS: dict[str, tuple[JsonValue, ...]] = {"fs:write": ("first", "second")}


async def copy(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Read once and write three times."""
    read = await api.call("n1", "fs:read", {"path": "a"})
    return [read, *[await api.call("n2", "fs:write", {"path": place}) for place in "bcd"]]


def dry() -> RunWorkflow:
    command = make_command("copy")
    grant = command.grant.model_copy(update={"dry_run": True})
    return command.model_copy(update={"grant": grant, "mocks": MOCKS})


EXPECTED: JsonValue = [{"path": "a"}, "first", "second", "second"]


async def test_mocks_answer_in_turn_and_the_last_one_stays() -> None:
    bus, tools = MemoryBus(), MemoryTools()
    command = dry()
    fact = await finish(command, make_dependencies(bus, MemoryPool({"copy": copy}), tools))
    assert (fact.success, fact.dry_run, fact.result) == (True, True, EXPECTED)
    assert tools.made == {"fs:read": 1}
    assert [task.mocked for task in fact.task_results] == [False, True, True, True]
    ends = [e for e in await journal_of(bus, command) if isinstance(e, ToolEnd)]
    assert [end.mocked for end in ends] == [False, True, True, True]


async def test_wherever_an_executor_dies_the_next_one_is_given_the_same_mocks() -> None:
    pool, deaths = MemoryPool({"copy": copy}), 0
    for at in range(1, 30):
        bus, tools, command = MemoryBus(), MemoryTools(), dry()
        mortal_bus, mortal_tools, died = crashing(bus, tools, at, at % 2 == 0)
        with suppress(RuntimeError):
            await finish(command, make_dependencies(mortal_bus, pool, mortal_tools))
        deaths += died()
        fact = await finish(command, make_dependencies(bus, pool, tools))
        assert (fact.result, tools.made) == (EXPECTED, {"fs:read": 1})
        if not died():
            break
    assert deaths > 2


async def test_a_run_that_is_not_dry_says_so() -> None:
    tools = MemoryTools()
    deps = make_dependencies(MemoryBus(), MemoryPool({"copy": copy}), tools)
    fact = await finish(make_command("copy"), deps)
    assert not fact.dry_run
    assert not any(task.mocked for task in fact.task_results)
    assert tools.made == {"fs:read": 1, "fs:write": 3}
