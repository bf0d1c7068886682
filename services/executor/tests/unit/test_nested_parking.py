"""A call inside a capability that needs approval."""

import asyncio

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from services.executor.tests.support.builders import agreed, capability, make_command, waiting
from services.executor.tests.support.harness import finish, make_dependencies, parked
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools


async def mailing(api: ProgramApi, args: JsonObject) -> JsonValue:
    before = await api.call("n1", "api:a", args)
    return [before, await api.call(None, "mail:send", args)]


async def twice(api: ProgramApi, args: JsonObject) -> JsonValue:
    return list(await asyncio.gather(*(api.capability("n1", 0, {"to": i}) for i in range(2))))


async def test_a_run_parks_inside_capabilities_and_goes_on_there_without_repeating() -> None:
    bus, tools = MemoryBus(), MemoryTools()
    pool = MemoryPool({"twice": twice, "mailing": mailing})
    command = make_command("twice", injected=[capability("mail:all", "mailing")])
    first = await parked(command, make_dependencies(bus, pool, tools))
    one, other = waiting(first)
    assert [(call.node_id, call.occurrence) for call in (one, other)] == [
        ("n1/dyn:mail:send", 0),
        ("n1/dyn:mail:send", 1),
    ]
    assert tools.made == {"api:a": 2}
    command = agreed(first, command, one)
    second = await parked(command, make_dependencies(bus, pool, tools))
    assert waiting(second) == (other,)
    command = agreed(second, command)

    fact = await finish(command, make_dependencies(bus, pool, tools))

    assert fact.error is None
    assert fact.result == [[{"to": i}, {"to": i}] for i in range(2)]
    assert tools.made == {"api:a": 2, "mail:send": 2}
    assert [one.success for one in fact.nested] == [True, True]
