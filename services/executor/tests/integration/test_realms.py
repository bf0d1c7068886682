"""Processes whose standing Worker gives each program a realm: what runs there, what does not."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.procfs import read_proc
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import Injected, Program, Returned
from pml_executor.domain.resources import Resources, cpu_seconds
from pml_executor.ports import SandboxBroken
from pml_executor.settings import ExecutorSettings
from services.executor.tests.support.sandboxes import started, value_of

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is used again"),
]

WHERE = "return typeof URL === 'undefined' ? 'realm' : 'worker';"


async def realm_command(runtime: Path | None = None) -> DenoCommand:
    """Build the command of processes with realms."""
    settings = ExecutorSettings(executor_pool_mode="per_scope_realm", executor_walls="off")
    if runtime is not None:
        settings = settings.model_copy(update={"executor_runtime": runtime})
    return replace(await sandbox_command(settings), stop_timeout_s=10)


@asynccontextmanager
async def in_realms(command: DenoCommand) -> AsyncGenerator[DenoSandbox]:
    """Run a process whose next program has a realm."""
    async with started(command) as sandbox:
        assert await value_of(sandbox, WHERE) == "worker"
        assert await next_one(sandbox)
        assert sandbox.in_realm
        yield sandbox


async def next_one(sandbox: DenoSandbox, *, realm: bool = True) -> bool:
    sandbox.finish()
    return await sandbox.renew(realm=realm)


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    return cpu_seconds(read_proc(f"/proc/{pid}/stat"), os.sysconf("SC_CLK_TCK"))


async def test_the_first_program_has_a_worker_and_those_after_it_realms() -> None:
    async with in_realms(await realm_command()) as sandbox:
        for _ in range(3):
            assert await value_of(sandbox, WHERE) == "realm"
            assert await next_one(sandbox)


async def test_a_process_with_realms_runs_nothing_else() -> None:
    async with in_realms(await realm_command()) as sandbox:
        assert await value_of(sandbox, WHERE) == "realm"
        assert not await next_one(sandbox, realm=False)


async def test_a_program_that_cannot_run_in_a_realm_runs_in_a_worker_and_the_next_in_one() -> None:
    async with in_realms(await realm_command()) as sandbox:
        for _ in range(2):
            assert await value_of(sandbox, "enum A { B = 7 } return A.B;") == 7
            assert not sandbox.in_realm
            assert await next_one(sandbox)
            assert await value_of(sandbox, WHERE) == "realm"
            assert await next_one(sandbox)


async def test_a_capability_that_cannot_run_in_a_realm_takes_its_caller_along() -> None:
    enum = Injected(name="a:b", called_as=("a_b",), code="enum A { B = 7 } return A.B;")
    code = "return [await capabilities.a_b({}), typeof URL];"
    async with in_realms(await realm_command()) as sandbox:
        await sandbox.run(Program(code=code, capabilities=(enum,), args={}, seed="0" * 32, now=0))
        async with asyncio.timeout(60):
            while not isinstance(message := await sandbox.receive(), Returned):
                pass
        assert message.value == [7, "function"]


async def test_a_realm_that_lets_a_probe_out_is_used_by_no_process(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    shutil.copytree(ExecutorSettings().executor_runtime, runtime)
    inner = runtime / "realm/inner.ts"
    text = inner.read_text(encoding="utf-8")
    lock = 'defineProperty(RealError, "prepareStackTrace", { value: undefined });'
    assert lock in text
    inner.write_text(text.replace(lock, ""), encoding="utf-8")
    frozen = runtime / "worker/intrinsics.ts"
    text = frozen.read_text(encoding="utf-8")
    shut = "if (object === RealError) freezeError(object);"
    assert shut in text
    frozen.write_text(text.replace(shut, "if (object === RealError) return;"), encoding="utf-8")

    command = await realm_command(runtime)
    assert command.may_use_realms()
    async with started(command) as sandbox:
        assert await value_of(sandbox, WHERE) == "worker"
        assert not await next_one(sandbox)
    assert not command.may_use_realms()
    assert command.realms is not None
    assert "call sites" in (command.realms.refused or "")
    async with started(command) as sandbox:
        for _ in range(3):
            assert await value_of(sandbox, WHERE) == "worker"
            assert await next_one(sandbox)
            assert not sandbox.in_realm


async def test_a_realm_that_goes_on_after_its_end_ends_the_process() -> None:
    command = replace(await realm_command(), stop_timeout_s=2)
    async with in_realms(command) as sandbox:
        assert await value_of(sandbox, "setTimeout(() => { for (;;); }, 0); return 0;") == 0
        before = cpu_s(sandbox.pid)
        await eventually(lambda: cpu_s(sandbox.pid) > before + 0.1)
        assert not await next_one(sandbox)


async def test_what_an_endless_loop_follows_is_not_sent() -> None:
    command = replace(await realm_command(), resources=Resources(max_cpu_s=2, runs=9, max_growth=1))
    async with in_realms(command) as sandbox:
        with pytest.raises(SandboxBroken, match="processor time"):
            await value_of(sandbox, "console.log(1); mcp.api.a({}); for (;;);")


async def test_a_process_has_so_many_realms_and_no_more() -> None:
    command = replace(await realm_command(), resources=Resources(runs=3, max_growth=1 / 2))
    async with in_realms(command) as sandbox:
        assert await value_of(sandbox, WHERE) == "realm"
        assert await next_one(sandbox)
        assert await value_of(sandbox, WHERE) == "realm"
        assert not await next_one(sandbox)
        assert not sandbox.finished


async def test_a_process_whose_memory_has_grown_is_replaced() -> None:
    resources = Resources(max_rss_mib=512, runs=100, max_growth=1 / 8)
    async with in_realms(replace(await realm_command(), resources=resources)) as sandbox:
        kept = "globalThis.c = new Uint8Array(1.2e8).fill(1); return 0;"
        assert await value_of(sandbox, kept) == 0
        assert not await next_one(sandbox)


async def test_no_program_finds_the_modules_of_the_standing_worker() -> None:
    command = await realm_command()
    assert command.realms is not None
    tried = """const found: JsonValue[] = [];
type JsonValue = string;
for (const name of ["node:vm", "node:module", "vm", "pml:vm", "pml-:vm"]) {
  await import(name).then(() => found.push(name), () => 0);
}
return found;"""
    async with in_realms(command) as sandbox:
        none: JsonValue = []
        assert await value_of(sandbox, tried) == none
    async with started(command) as sandbox:
        assert await value_of(sandbox, tried) == none


async def test_former_realms_leave_the_heap() -> None:
    """Run so many programs that their contexts would not all fit into the heap."""
    settings = ExecutorSettings(
        executor_pool_mode="per_scope_realm", executor_walls="off", executor_max_heap_mib=64
    )
    command = await sandbox_command(settings)
    resources = Resources(runs=1000, max_growth=1 / 2)
    async with in_realms(replace(command, resources=resources, stop_timeout_s=10)) as sandbox:
        for _ in range(400):
            assert await value_of(sandbox, "return 0;") == 0
            assert await next_one(sandbox)
