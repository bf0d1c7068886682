"""Runs of DAGs that wait for approval between two layers."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest
from pydantic import JsonValue

from pml_common.contracts.executor import (
    Checkpoint,
    ParkMark,
    RunFinished,
    RunWorkflow,
    WorkflowParked,
)
from pml_common.contracts.tool import JsonObject, args_hash
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.domain.layers import hold_before_layer
from pml_executor.domain.parking import Parking
from services.executor.tests.support.builders import agreed, capability, make_command
from services.executor.tests.support.fakes import crashing
from services.executor.tests.support.harness import (
    deliver,
    finish,
    journal_of,
    make_dependencies,
    parked,
)
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools

EACH_ONCE = {"fs:read": 1, "fs:create": 1, "fs:write": 1, "fs:stat": 1}


async def in_layers(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Read; create and write in parallel; call a capability."""
    read = await api.call("n1", "fs:read", {"path": "/a"})
    both = await asyncio.gather(
        api.call("n2", "fs:create", {"from": read}), api.call("n3", "fs:write", {"n": 2})
    )
    return [read, *both, await api.capability("n4", 0, {"path": "/b"})]


async def looking(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await api.call("n1", "fs:stat", args)


LOOK = capability("fs:look", "looking")
POOL = {"layers": in_layers, "looking": looking}
SECOND = Checkpoint(layer=2, node_ids=("n2", "n3"))
THIRD = Checkpoint(layer=3, node_ids=("n4",))


def layered(*checkpoints: Checkpoint) -> RunWorkflow:
    command = make_command("layers", injected=[LOOK])
    return command.model_copy(update={"checkpoints": checkpoints or (SECOND, THIRD)})


def let_on(before: RunWorkflow) -> RunWorkflow:
    """Build the command that follows the approval of the next layer."""
    return before.model_copy(update={"command_id": uuid4(), "begins": False})


async def test_a_run_waits_before_each_layer_that_it_should_and_repeats_no_call() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
    command = layered()

    first = await parked(command, make_dependencies(bus, pool, tools))

    assert (first.wanted.layer, first.wanted.node_id) == (2, "n2")
    assert (first.wanted.tool, first.wanted.definition_hash) == ("fs:create", "hash")
    assert first.wanted.args == {"from": {"path": "/a"}}
    assert [each.tool for each in first.task_results] == ["fs:read"]
    assert tools.made == {"fs:read": 1}
    types = [entry.type for entry in await journal_of(bus, command)]
    assert types == ["capability_start", "tool_start", "tool_end"]

    command = let_on(command)
    second = await parked(command, make_dependencies(bus, pool, tools))
    assert (second.wanted.layer, second.wanted.node_id) == (3, "n4")
    assert (second.wanted.tool, second.wanted.definition_hash) == ("cap:fs:look", LOOK.code_hash)
    assert tools.made == {"fs:read": 1, "fs:create": 1, "fs:write": 1}

    fact = await finish(let_on(command), make_dependencies(bus, pool, tools))
    assert fact.success, fact.error
    assert tools.made == EACH_ONCE
    assert fact.result == [{"path": "/a"}, {"from": {"path": "/a"}}, {"n": 2}, {"path": "/b"}]


async def test_a_run_waits_nowhere_else() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
    command = layered(THIRD)
    only = await parked(command, make_dependencies(bus, pool, tools))
    assert only.wanted.layer == 3
    assert (await finish(let_on(command), make_dependencies(bus, pool, tools))).success


async def test_what_capabilities_gave_is_told_when_a_later_layer_waits() -> None:
    async def capability_first(api: ProgramApi, args: JsonObject) -> JsonValue:
        found = await api.capability("n1", 0, {"path": "/b"})
        return await api.call("n2", "fs:write", {"what": found})

    pool = MemoryPool({"layers": capability_first, "looking": looking})
    command = layered(Checkpoint(layer=2, node_ids=("n2",)))
    fact = await parked(command, make_dependencies(MemoryBus(), pool, MemoryTools()))
    assert [(each.node_id, each.result) for each in fact.nested] == [("n1", {"path": "/b"})]


async def test_a_layer_that_was_let_pass_stays_so_when_a_call_in_it_waits() -> None:
    async def mailing(api: ProgramApi, args: JsonObject) -> JsonValue:
        return await api.call(None, "mail:send", args)

    bus, tools = MemoryBus(), MemoryTools()
    pool = MemoryPool({"layers": in_layers, "looking": mailing})
    command = layered(THIRD)
    layer = await parked(command, make_dependencies(bus, pool, tools))
    command = let_on(command)
    call = await parked(command, make_dependencies(bus, pool, tools))
    told = layer.wanted.layer, call.wanted.layer, call.wanted.tool
    assert told == (3, None, "mail:send")
    fact = await finish(agreed(call, command), make_dependencies(bus, pool, tools))
    assert fact.success, fact.error
    assert tools.made == {"fs:read": 1, "fs:create": 1, "fs:write": 1, "mail:send": 1}


async def test_a_command_whose_run_waits_and_a_stale_one_run_nothing() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
    command = layered()
    first = await parked(command, make_dependencies(bus, pool, tools))
    assert await parked(command, make_dependencies(bus, pool, tools)) == first
    assert pool.leased == 1

    went_on = let_on(command)
    second = await parked(went_on, make_dependencies(bus, pool, tools))
    for again in (command, went_on):
        assert await parked(again, make_dependencies(bus, pool, tools)) == second
    assert pool.leased == 2
    assert (await finish(let_on(went_on), make_dependencies(bus, pool, tools))).success
    assert tools.made == EACH_ONCE


async def test_an_executor_may_die_anywhere_and_each_layer_is_asked_about_once() -> None:
    async def survive(command: RunWorkflow, effects: int, *, after: bool) -> tuple[object, bool]:
        """Return the final event, and whether an executor died before it."""
        mortal, mortal_tools, _ = crashing(bus, tools, effects, after)
        try:
            facts = await deliver(command, make_dependencies(mortal, pool, mortal_tools))
        except (RuntimeError, ExceptionGroup):
            return (await deliver(command, make_dependencies(bus, pool, tools)))[0], True
        return facts[0], False

    for effects in range(1, 40):
        for after in (False, True):
            bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
            command, asked, deaths = layered(), list[int | None](), 0
            fact, died = await survive(command, effects, after=after)
            while isinstance(fact, WorkflowParked):
                asked.append(fact.wanted.layer)
                deaths += died
                command = let_on(command)
                fact, died = await survive(command, effects, after=after)
            assert isinstance(fact, RunFinished)
            assert fact.success, fact.error
            assert (asked, tools.made) == ([2, 3], EACH_ONCE)
            if not deaths and not died:
                assert effects > 5
                return
    raise AssertionError("no executor lived long enough")


async def test_the_time_between_layers_is_not_the_runs_own() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
    deps, hours = make_dependencies(bus, pool, tools), 0.0
    later = replace(deps, now=lambda: deps.now() + hours * 3_600_000)
    command = layered(THIRD)
    expires_at = command.grant.expires_at.replace(year=2999)
    grant = command.grant.model_copy(update={"expires_at": expires_at})
    command = command.model_copy(update={"grant": grant, "timeout_s": 20.0})
    await parked(command, later)
    hours = 9.0
    fact = await finish(let_on(command), later)
    assert fact.success, fact.error
    assert fact.duration_ms < 20_000


def test_only_going_on_from_a_layer_lets_it_pass() -> None:
    command = layered()

    def held(*marks: ParkMark, node_id: str = "n3", tool: str = "fs:write") -> int | None:
        try:
            hold_before_layer(command, marks, node_id, tool, {"n": 2})
        except Parking as parking:
            return parking.wanted[0].layer
        return None

    with pytest.raises(Parking) as parking:
        hold_before_layer(command, (), "n3", "fs:write", {"n": 2})
    (wanted,) = parking.value.wanted
    waits = ParkMark(command_id=uuid4(), ts=1, wanted=wanted)
    went_on = ParkMark(command_id=uuid4(), ts=2)
    assert wanted.args_hash == args_hash({"n": 2})
    assert held(waits) == held(went_on) == held(waits, waits) == 2
    assert held(waits, went_on) is None
    assert held(waits, went_on, waits) is None
    assert held(waits, went_on, node_id="n4", tool="cap:fs:look") == 3
    assert held(node_id="n1", tool="fs:read") is None
