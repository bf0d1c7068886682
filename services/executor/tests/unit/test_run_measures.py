"""Measurements of runs, their replays and their sandboxes."""

import asyncio
from collections.abc import Generator

import pytest
from pydantic import JsonValue

from libs.pml_common.tests.support.measured import Measured, measured
from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.tool import JsonObject
from pml_common.telemetry import metrics
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.entrypoints.bus.on_run_workflow import on_run_workflow
from pml_executor.ports import SandboxUnavailable
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.fakes import ACME, Factory, pool_of
from services.executor.tests.support.harness import finish, make_dependencies
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools, answering

RUNS = f"{metrics.RUNS.prometheus_name}_count"
KILLS = metrics.SANDBOX_KILLS.samples[0]
REPLAYS = metrics.REPLAYS.samples[0]


@pytest.fixture
def m() -> Generator[Measured]:
    with measured() as one:
        yield one


async def read_once(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await api.call("n1", "fs:read", {"path": "/x"})


async def hang(api: ProgramApi, args: JsonObject) -> JsonValue:
    await asyncio.Event().wait()
    return None


async def test_a_run_is_measured_with_its_outcome_and_a_finished_one_is_not_killed(
    m: Measured,
) -> None:
    tools = MemoryTools({"fs:read": answering("hello")})
    deps = make_dependencies(MemoryBus(), MemoryPool({"read": read_once}), tools)
    command = make_command("read")
    await finish(command, deps)
    assert m.value(RUNS, pml_outcome="success") == 1
    assert m.value(KILLS) == m.value(REPLAYS) == 0
    await on_run_workflow(command, deps, redelivered=True)
    assert m.value(RUNS) == 1  # it has ended: there was nothing to run


async def test_a_run_out_of_time_is_killed_with_that_reason(m: Measured) -> None:
    deps = make_dependencies(MemoryBus(), MemoryPool({"hang": hang}), MemoryTools())
    fact = await finish(make_command("hang", timeout_s=0.05), deps)  # waits: it is over
    assert fact.error is not None
    assert m.value(RUNS, pml_outcome="timeout") == 1
    assert m.value(KILLS, pml_reason="timeout") == 1


async def test_a_takeover_is_a_replay(m: Measured) -> None:
    bus, asked = MemoryBus(), asyncio.Event()

    async def read_and_hang(api: ProgramApi, args: JsonObject) -> JsonValue:
        await api.call("n1", "fs:read", {"path": "/x"})
        asked.set()
        return await hang(api, args)

    command = make_command("program")
    tools = MemoryTools({"fs:read": answering("hello")})
    deps = make_dependencies(bus, MemoryPool({"program": read_and_hang}), tools)
    first = asyncio.create_task(on_run_workflow(command, deps, redelivered=False))
    await asked.wait()
    first.cancel()
    await asyncio.wait([first])
    assert m.value(RUNS, pml_outcome="stopped") == 1
    assert m.value(KILLS, pml_reason="stopped") == 1
    again = make_dependencies(bus, MemoryPool({"program": read_once}), tools)
    await on_run_workflow(command, again, redelivered=True)
    assert m.value(REPLAYS) == 1
    assert m.value(RUNS, pml_outcome="success") == 1


async def test_processes_are_counted_by_state_and_leases_by_outcome(m: Measured) -> None:
    factory, processes = Factory(), metrics.SANDBOXES.samples[0]
    leases = f"{metrics.SANDBOX_LEASE.prometheus_name}_count"
    async with pool_of(factory, spares=1, max_processes=2, lease_timeout_s=0.05) as pool:
        await eventually(lambda: m.value(processes, pml_state="spare") == 1)
        assert m.value(metrics.SANDBOX_LIMIT.samples[0]) == 2
        async with pool.lease(ACME), pool.lease(ACME):
            assert m.value(processes, pml_state="busy") == 2
            with pytest.raises(SandboxUnavailable):
                async with pool.lease(ACME):
                    raise AssertionError("leased")
        assert m.value(leases, pml_outcome="leased") == 2
        assert m.value(leases, pml_outcome="unavailable") == 1
    assert m.value(processes) == m.value(metrics.SANDBOX_LIMIT.samples[0]) == 0
