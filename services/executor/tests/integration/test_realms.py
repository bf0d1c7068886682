"""Processes whose standing Worker gives each program a realm: what runs there, what does not."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue
from typing_extensions import override

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.frame_channel import FrameChannel
from pml_executor.adapters.procfs import read_proc
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import HostMessage, Order, Program, Returned
from pml_executor.domain.realms import HiddenModules
from pml_executor.domain.resources import Resources, cpu_seconds
from pml_executor.domain.walls import ENVIRONMENT
from pml_executor.ports import NeedsWorker, Sandbox, SandboxBroken, SandboxPool
from pml_executor.settings import ExecutorSettings
from services.executor.tests.support.builders import capability, make_command
from services.executor.tests.support.harness import deliver, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools
from services.executor.tests.support.realms import realm_pool
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


@pytest.mark.parametrize(
    "code",
    ["enum A { B = 7 } return A.B;", "let n = 2; while (n --> 0); return n;", "<!-- a\nreturn 7;"],
)
async def test_a_program_that_cannot_run_in_a_realm_is_not_run_and_the_next_one_is(
    code: str,
) -> None:
    async with in_realms(await realm_command()) as sandbox:
        for _ in range(2):
            with pytest.raises(NeedsWorker):
                await value_of(sandbox, code)
            assert sandbox.needs_worker
            assert await next_one(sandbox)
            assert await value_of(sandbox, WHERE) == "realm"
            assert not sandbox.needs_worker
            assert await next_one(sandbox)


@pytest.mark.parametrize("by", ["program", "capability"])
async def test_a_run_that_needs_a_worker_has_it_in_a_process_without_realms(by: str) -> None:
    enum = "enum A { B = 7 } return [A.B, typeof DisposableStack];"
    async with realm_pool(ExecutorSettings(executor_walls="off")) as pool:
        recorded = Recorded(pool)
        injected = [] if by == "program" else [capability("a:b", enum)]
        code = enum if by == "program" else "return await capabilities.a_b({});"
        for _ in range(2):
            command = make_command(code, injected=injected)
            deps = make_dependencies(MemoryBus(), recorded, MemoryTools())
            (fact,) = await deliver(command, deps)
            assert isinstance(fact, RunFinished)
            assert (fact.error, fact.result) == (None, [7, "function"])
    first, worker, second, again = recorded.leased
    assert (first, worker) == (second, again)
    assert isinstance(first, DenoSandbox)
    assert isinstance(worker, DenoSandbox)
    assert (first.in_realm, worker.in_realm) == (True, False)
    assert pool.workers == 2


class Recorded(SandboxPool):
    """A pool that records what it leased."""

    def __init__(self, pool: SandboxPool) -> None:
        self._pool = pool
        self.leased: list[Sandbox] = []

    @override
    @asynccontextmanager
    async def lease(self, owner: Scope | None, *, realm: bool = False) -> AsyncGenerator[Sandbox]:
        async with self._pool.lease(owner, realm=realm) as sandbox:
            self.leased.append(sandbox)
            yield sandbox


class Raw:
    """The host's frames, without the sandbox's rules about what may follow what."""

    def __init__(self, channel: FrameChannel) -> None:
        self.channel = channel

    async def said(self, kind: str) -> HostMessage:
        message = await self.channel.read()
        assert isinstance(message, HostMessage), message
        assert message.kind == kind, message
        return message

    async def start(self, order: Order, nonce: str = "") -> None:
        self.channel.send_order(order, nonce)
        await self.said("ready")

    async def replace(self, order: Order) -> None:
        self.channel.send_order("stop")
        await self.said("stopped")
        await self.start(order, await self.channel.check())

    async def value_of(self, code: str) -> JsonValue:
        program = Program(code=code, args={}, seed="0" * 32, now=0)
        self.channel.write(program.model_dump_json().encode(), "program")
        message = await self.channel.read()
        assert isinstance(message, Returned), message
        return message.value


@asynccontextmanager
async def raw_process(hidden: HiddenModules) -> AsyncGenerator[Raw]:
    """Run a process with these hidden modules and nothing started."""
    command = await realm_command()
    child = await command.launch(command.argv_with(hidden), ENVIRONMENT)
    channel = FrameChannel(child, "5" * 32, command.max_message_bytes)
    try:
        async with asyncio.timeout(PATIENCE_S):
            hello = command.hello("5" * 32, await command.worker(), hidden)
            channel.write(hello.model_dump_json().encode())
            yield Raw(channel)
    finally:
        await child.close(5)
        await channel.close()


TWICE = """const got: string[] = [];
for (const name of NAMES) for (let i = 0; i < 2; i++) {
  await import(name, OPTIONS).then(() => got.push(name), () => 0);
}
return got;"""


async def test_the_text_of_a_standing_worker_cannot_be_read() -> None:
    """Not even by a Worker of the same process, which has the URL from a stack in a realm."""
    seen: set[str] = set()
    async with raw_process(HiddenModules("5ecret")) as raw:
        await raw.start("start")
        for _ in range(2):
            await raw.replace("realm")
            stack = await raw.value_of("Error.stackTraceLimit = 99; return new Error().stack;")
            url = re.search(r"blob:null/[0-9a-f-]{36}", str(stack))
            assert url is not None, stack
            seen.add(url[0])
            await raw.replace("start")
            for options in ("{ with: { type: 'text' } }", "{ with: { type: 'bytes' } }", "{}"):
                code = TWICE.replace("NAMES", json.dumps([url[0]])).replace("OPTIONS", options)
                assert await raw.value_of(code) == []
            await raw.replace("start")
    assert len(seen) == 2


async def test_the_names_of_hidden_modules_are_of_no_use_to_a_program_that_knows_them() -> None:
    names = json.dumps(["pml-5ecret:vm", "pml-5ecret:module"])
    code = TWICE.replace("NAMES", names).replace("OPTIONS", "{}")
    async with raw_process(HiddenModules("5ecret")) as raw:
        await raw.start("start")
        assert await raw.value_of(code) == []
        await raw.replace("realm")
        assert await raw.value_of(code) == []
        await raw.replace("start")
        assert await raw.value_of(code) == []


async def test_a_process_with_realms_starts_no_other_worker() -> None:
    command = await realm_command()
    async with in_realms(command) as sandbox:
        assert command.realms is not None
        command.realms.refuse("found by another process")
        assert await value_of(sandbox, WHERE) == "realm"
        assert not await next_one(sandbox, realm=False)
        assert sandbox.in_realm


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
