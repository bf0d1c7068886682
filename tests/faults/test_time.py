"""Clocks that jump or differ, and a bus outage: neither costs a run its time."""

import asyncio
import os
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import httpx2
import pytest

from libs.pml_common.tests.support.harness import write_key_files
from libs.pml_local.tests.support.harness import RunningNats, eventually
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts.catalog import CALL_TOOL, RUN_FINISHED
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_local.ports import free_port
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.memory_tools import MemoryTool, MemoryTools

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

THREE = """const a = await __pml.at("n1", mcp.api.a)({});
const b = await __pml.at("n2", mcp.api.b)({ a });
return await __pml.at("n3", mcp.api.c)({ b });"""
HOUR_S = 3600.0


class GatedTools:
    """Tools that wait until they are released, one after another."""

    def __init__(self) -> None:
        self._gates = {tool: asyncio.Event() for tool in ("api:a", "api:b", "api:c")}
        self.tools = MemoryTools({tool: self._waiting(gate) for tool, gate in self._gates.items()})

    def _waiting(self, gate: asyncio.Event) -> MemoryTool:
        async def wait(args: JsonObject) -> ToolOutcome:
            await gate.wait()
            return ToolOutcome(status="ok", result=args)

        return wait

    def release(self, tool: str) -> None:
        """Release its calls."""
        self._gates[tool].set()

    async def asked(self, tool: str, times: int = 1) -> None:
        """Wait until it was called `times` times."""
        await eventually(
            lambda: sum(question.tool == tool for question in self.tools.asked) >= times,
        )


@asynccontextmanager
async def executor(nats_url: str, turned_by: Path, port: int = 0) -> AsyncGenerator[Process]:
    """An executor on a machine with its own time."""
    with tempfile.TemporaryDirectory() as folder:
        told = {
            **write_key_files(Path(folder), "executor"),
            "PML_NATS_URL": nats_url,
            "PML_SHUTDOWN_TIMEOUT_S": "0.2",
            "PML_HEALTH_PORT": str(port),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.faults.turned_executor",
            str(turned_by),
            env={**os.environ, **told},
            stdout=DEVNULL,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@pytest.fixture
async def bus(nats_url: str) -> AsyncGenerator[NatsBus]:
    """A connection that may do everything."""
    connected = await NatsBus.connect(nats_url, service="test", identity=all_services_identity())
    yield connected
    await connected.drain(1.0)


async def end_of(bus: NatsBus, command: RunWorkflow) -> RunFinished:
    """The run's end, once it is published."""

    async def published() -> RunFinished | None:
        past = await bus.history(command.scope, str(command.workflow_id), of=RUN_FINISHED)
        ends = (each.message for each in past)
        return next((each for each in ends if isinstance(each, RunFinished)), None)

    return await eventually(published)


async def test_jumping_and_differing_clocks_cost_a_run_no_time(
    nats_url: str, bus: NatsBus, tmp_path: Path
) -> None:
    held, port, turned_by = (
        GatedTools(),
        free_port(),
        [tmp_path / name for name in ("one", "other")],
    )
    await bus.serve(CALL_TOOL, held.tools.call)
    command = make_command(THREE, timeout_s=50.0)
    turned_by[0].write_text("0")
    async with executor(nats_url, turned_by[0]) as first:
        await bus.publish(command)
        await held.asked("api:a")
        turned_by[0].write_text(str(HOUR_S))
        held.release("api:a")
        await held.asked("api:b")
        first.send_signal(signal.SIGTERM)
        await first.wait()
    turned_by[1].write_text(str(-2 * HOUR_S))
    async with executor(nats_url, turned_by[1], port), httpx2.AsyncClient() as http:
        await held.asked("api:b", times=2)
        health = await http.get(f"http://127.0.0.1:{port}/healthz")
        held.release("api:b")
        held.release("api:c")
        fact = await end_of(bus, command)
    assert fact.success, fact.error
    assert held.tools.made == {"api:a": 1, "api:b": 1, "api:c": 1}
    assert {1.0 < question.timeout_s <= 50.0 for question in held.tools.asked} == {True}
    assert 0 < fact.duration_ms < 50_000
    assert health.status_code == 200
    assert "the local clock is 7200.0 s behind" in health.json()["checks"]["clock"]


async def test_an_outage_longer_than_the_time_limit_does_not_end_a_run(
    nats_server: RunningNats,
    bus: NatsBus,
    tmp_path: Path,
) -> None:
    held, turned_by, time_s = GatedTools(), tmp_path / "one", 12.0
    await bus.serve(CALL_TOOL, held.tools.call)
    command = make_command(THREE, timeout_s=time_s)
    turned_by.write_text("0")
    async with executor(nats_server.url, turned_by):
        await bus.publish(command)
        await held.asked("api:a")
        await nats_server.kill()
        killed_at = monotonic()
        held.release("api:a")
        await eventually(lambda: monotonic() - killed_at > time_s)  # waits: outlast its limit
        held.release("api:b")
        held.release("api:c")
        await nats_server.start()
        await eventually(bus.healthy)
        fact = await end_of(bus, command)
    assert fact.success, fact.error
    assert held.tools.made == {"api:a": 1, "api:b": 1, "api:c": 1}
