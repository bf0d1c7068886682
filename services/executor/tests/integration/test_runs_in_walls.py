"""Runs inside walls of each kind: limits, ends, and no difference that a program could detect."""

import asyncio
import os
import resource
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.executor import RunFinished
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.walls import (
    unwalled_command,
)
from pml_executor.domain.protocol import Program
from pml_executor.domain.resources import Resources
from pml_executor.ports import SandboxBroken
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import finish, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools
from services.executor.tests.support.sandboxes import (
    bare_runtime,
    command_lines,
    sandbox_config,
    walled_command,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="walls are the Linux kernel's"),
]


@pytest.fixture(params=["bubblewrap", "landlock", "seccomp", "none"])
async def walls(request: pytest.FixtureRequest) -> DenoCommand:
    return await walled_command(request.param)


def link(path: str | Path) -> str:
    return str(Path(path).readlink())


def entries(path: str) -> list[Path]:
    return list(Path(path).iterdir())


async def test_a_process_is_held_to_its_limits_and_given_no_descriptor(walls: DenoCommand) -> None:
    sandbox = await DenoSandbox.start(walls)
    try:
        for name in ("RLIMIT_CORE", "RLIMIT_FSIZE"):
            assert resource.prlimit(sandbox.pid, getattr(resource, name)) == (0, 0)
        assert resource.prlimit(sandbox.pid, resource.RLIMIT_NOFILE)[1] <= 256
        held = {link(path).split(":")[0] for path in entries(f"/proc/{sandbox.pid}/fd")}
        assert held <= {"pipe", "socket", "anon_inode", "/dev/null", "/dev/urandom"}
    finally:
        await sandbox.close()


async def test_a_killed_process_leaves_nothing(walls: DenoCommand) -> None:
    sandbox = await DenoSandbox.start(walls)
    await sandbox.run(Program(code="for (;;) ;", args={}, seed="0" * 32, now=0))
    await sandbox.close()
    assert not sandbox.alive
    await eventually(lambda: not Path(f"/proc/{sandbox.pid}").exists())
    await sandbox.close()


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 13])
async def test_a_start_given_up_midway_leaves_nothing(walls: DenoCommand, turns: int) -> None:
    mark = f"--seed={os.getpid()}{turns}"
    command = replace(walls, argv=[*walls.argv, mark])
    start = asyncio.create_task(DenoSandbox.start(command))
    for _ in range(turns):
        await asyncio.sleep(0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    await eventually(lambda: not any(mark in words for words in command_lines()))


RunIn = Callable[[DenoCommand, str], Awaitable[RunFinished]]


@pytest.fixture
def run_in() -> RunIn:
    async def run(command: DenoCommand, code: str) -> RunFinished:
        async with DenoPool(lambda: DenoSandbox.start(command), PoolSize(spares=1)) as pool:
            deps = make_dependencies(MemoryBus(), pool, MemoryTools())
            return await finish(make_command(code), deps)

    return run


async def test_a_program_cannot_tell_what_stands_around_it(
    walls: DenoCommand, run_in: RunIn
) -> None:
    code = """const names = Object.getOwnPropertyNames(globalThis).sort();
    const at = new Error("x").stack!.split("\\n").length;
    return [names.length, at, typeof navigator, Date.now() > 0, await mcp.api.a({ x: 1 })];"""
    inside = await run_in(walls, code)
    outside = await run_in(await unwalled_command(sandbox_config()), code)
    assert inside.error is None
    assert inside.result == outside.result


@pytest.mark.parametrize(
    "code",
    [
        "const kept = []; for (;;) kept.push(new Uint8Array(2 ** 24).fill(1));",
        "return new Uint8Array(2 ** 31).fill(1).length;",
        "const kept = []; for (;;) kept.push(new Array(1000).fill({}));",
    ],
    ids=["many buffers", "one large buffer", "heap"],
)
async def test_memory_outside_the_heap_ends_a_run_as_the_heap_does(
    walls: DenoCommand, run_in: RunIn, code: str
) -> None:
    held = replace(walls, resources=Resources(max_rss_mib=256))
    fact = await run_in(held, code)
    assert fact.error is not None
    assert (fact.error.kind, "MiB of memory" in fact.error.message) == ("memory_limit", True)


async def test_a_program_that_ends_its_own_worker_is_reported(tmp_path: Path) -> None:
    sandbox = await DenoSandbox.start(
        await unwalled_command(sandbox_config(bare_runtime(tmp_path)))
    )
    await sandbox.run(Program(code="close();", args={}, seed="0" * 32, now=0))
    try:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(SandboxBroken, match="ended its own Worker") as error:
                await sandbox.receive()
        assert error.value.kind == "user_error"
    finally:
        await sandbox.close()
