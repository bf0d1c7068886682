"""The executor as a process, on a real NATS: killed, stopped, and started again."""

import asyncio
import os
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from libs.pml_common.tests.support.harness import write_key_files
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import ids
from pml_common.contracts.catalog import CALL_TOOL, RUN_FINISHED
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.memory_tools import MemoryTools

pytestmark = pytest.mark.integration

THREE = """const a = await __pml.at("n1", mcp.api.a)({ at: Date.now(), r: Math.random() });
const b = await __pml.at("n2", mcp.api.b)({ a });
return [await __pml.at("n3", mcp.api.c)({ b, id: crypto.randomUUID() }), Date.now()];"""


@asynccontextmanager
async def executor(nats_url: str) -> AsyncGenerator[Process]:
    """Run an executor process."""
    with tempfile.TemporaryDirectory() as folder:
        keys = write_key_files(Path(folder), "executor")
        told = {"PML_NATS_URL": nats_url, "PML_SHUTDOWN_TIMEOUT_S": "0.2"}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pml_executor", env={**os.environ, **keys, **told}, stdout=DEVNULL
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


class Held:
    """Tools of which one waits until it is released."""

    def __init__(self, tool: str) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self.tools = MemoryTools({tool: self._hold})

    async def _hold(self, args: JsonObject) -> ToolOutcome:
        self.reached.set()
        await self.go_on.wait()
        return ToolOutcome(status="ok", result=args)


async def fact_of(bus: NatsBus, command: RunWorkflow) -> RunFinished:
    """Wait for the run's `run-finished`."""

    async def stated() -> RunFinished | None:
        entity = str(command.workflow_id)
        records = await bus.history(command.scope, entity, of=RUN_FINISHED)
        facts = [r.message for r in records if isinstance(r.message, RunFinished)]
        assert len(facts) <= 1
        return facts[0] if facts else None

    return await eventually(stated)


async def test_a_command_is_run_to_its_end(nats_url: str) -> None:
    bus, tools = (
        await NatsBus.connect(nats_url, service="test", identity=all_services_identity()),
        MemoryTools(),
    )
    await bus.serve(CALL_TOOL, tools.call)
    async with executor(nats_url):
        command = make_command(THREE)
        await bus.publish(command)
        fact = await fact_of(bus, command)
    assert fact.success
    assert fact.executed_path == ("n1", "n2", "n3")
    assert fact.event_id == ids.effect_id(command.workflow_id, "run-finished")
    assert tools.made == {"api:a": 1, "api:b": 1, "api:c": 1}
    await bus.drain()


@pytest.mark.parametrize(
    ("tool", "number"),
    [
        ("api:b", signal.SIGKILL),
        pytest.param("api:a", signal.SIGKILL, marks=pytest.mark.nightly),
        pytest.param("api:c", signal.SIGKILL, marks=pytest.mark.nightly),
        ("api:b", signal.SIGTERM),
    ],
)
async def test_a_run_outlives_its_executor_and_each_tool_runs_once(
    nats_url: str, tool: str, number: signal.Signals
) -> None:
    bus, held = (
        await NatsBus.connect(nats_url, service="test", identity=all_services_identity()),
        Held(tool),
    )
    await bus.serve(CALL_TOOL, held.tools.call)
    command = make_command(THREE, timeout_s=60.0)
    async with executor(nats_url) as first:
        await bus.publish(command)
        async with asyncio.timeout(PATIENCE_S):
            await held.reached.wait()
            first.send_signal(number)
            await first.wait()
    async with executor(nats_url):
        held.go_on.set()
        fact = await fact_of(bus, command)
    assert fact.success
    assert fact.executed_path == ("n1", "n2", "n3")
    assert held.tools.made == {"api:a": 1, "api:b": 1, "api:c": 1}
    await bus.drain()


async def test_a_frozen_executor_loses_its_run_and_states_nothing(nats_url: str) -> None:
    bus, held = (
        await NatsBus.connect(nats_url, service="test", identity=all_services_identity()),
        Held("api:b"),
    )
    await bus.serve(CALL_TOOL, held.tools.call)
    command = make_command(THREE, timeout_s=60.0)
    async with executor(nats_url) as first:
        await bus.publish(command)
        async with asyncio.timeout(PATIENCE_S):
            await held.reached.wait()
        first.send_signal(signal.SIGSTOP)
        async with executor(nats_url):
            await eventually(lambda: len(held.tools.asked) == 3)
            first.send_signal(signal.SIGCONT)
            held.go_on.set()
            fact = await fact_of(bus, command)
    assert fact.success
    assert held.tools.made == {"api:a": 1, "api:b": 1, "api:c": 1}
    await bus.drain()
