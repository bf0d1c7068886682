"""A call inside a capability that a person must agree to."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

from pydantic import JsonValue

from pml_common.bus.memory import MemoryBus
from pml_common.contracts.executor import RunFinished, RunWorkflow, WorkflowParked
from pml_common.contracts.grant import GrantedCall
from pml_common.contracts.tool import JsonObject
from pml_executor.adapters.memory_sandbox import MemoryPool, ProgramApi
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.handlers.on_run_workflow import Executor, on_run_workflow
from services.executor.tests.nested import capability


async def mailing(api: ProgramApi, args: JsonObject) -> JsonValue:
    before = await api.call("n1", "api:a", args)
    return [before, await api.call(None, "mail:send", args)]


async def twice(api: ProgramApi, args: JsonObject) -> JsonValue:
    return list(await asyncio.gather(*(api.capability("n1", 0, {"to": i}) for i in range(2))))


async def test_a_run_parks_inside_capabilities_and_goes_on_there_without_repeating(
    make_command: Callable[..., RunWorkflow],
    make_executor: Callable[..., Executor],
    finish: Callable[[RunWorkflow, Executor], Awaitable[RunFinished]],
) -> None:
    bus, tools = MemoryBus(), MemoryTools()
    pool = MemoryPool({"twice": twice, "mailing": mailing})
    command = make_command("twice", injected=[capability("mail:all", "mailing")])
    command = command.model_copy(update={"askable": {"mail:send": "hash"}})
    wanted: list[tuple[str, int]] = []
    for _ in range(2):
        async with asyncio.timeout(30):
            (fact,) = await on_run_workflow(command, make_executor(bus, pool, tools))
        assert isinstance(fact, WorkflowParked)
        wanted.append((fact.wanted.node_id, fact.wanted.occurrence))
        call = GrantedCall(
            tool="mail:send", definition_hash="hash", args_hash=fact.wanted.args_hash
        )
        grant = fact.grant.model_copy(update={"calls": (*fact.grant.calls, call)})
        command = command.model_copy(update={"command_id": uuid4(), "grant": grant})

    fact = await finish(command, make_executor(bus, pool, tools))

    assert fact.error is None
    assert wanted == [("n1/dyn:mail:send", 0), ("n1/dyn:mail:send", 1)]
    assert fact.result == [[{"to": i}, {"to": i}] for i in range(2)]
    assert tools.made == {"api:a": 2, "mail:send": 2}
    assert [one.success for one in fact.nested] == [True, True]
