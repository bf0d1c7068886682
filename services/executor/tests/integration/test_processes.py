"""Deno processes end when they should, even without their executor."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.scope import Scope
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.orphans import end_orphans
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import Program
from pml_executor.ports import SandboxUnavailable
from pml_executor.settings import ExecutorSettings
from services.executor.tests.support.sandboxes import command_lines

pytestmark = pytest.mark.integration

ACME = Scope(org="acme", project="webapp")

HOLDER = """
import asyncio, sys
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import Program
from pml_executor.settings import ExecutorSettings

async def main(leashed):
    walls = "best_effort" if leashed else "off"
    command = await sandbox_command(ExecutorSettings(executor_walls=walls))
    if not leashed:
        deno = next(i for i, word in enumerate(command.argv) if word.endswith("deno"))
        command = type(command)(command.argv[deno:], 2**22, 128, command.worker)
    sandboxes = [await DenoSandbox.start(command) for _ in range(2)]
    await sandboxes[0].run(Program(code="for (;;) ;", args={}, seed="0" * 32, now=0))
    print(*(sandbox.pid for sandbox in sandboxes), flush=True)
    await asyncio.Event().wait()

asyncio.run(main(sys.argv[1] == "leashed"))
"""


@asynccontextmanager
async def holder(how: str) -> AsyncGenerator[tuple[Process, list[int]]]:
    """Start a process with a busy and an idle sandbox; yield it and their ids."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, how, stdout=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield process, [int(pid) for pid in (await process.stdout.readline()).split()]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.stdout.read()
        await process.wait()


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", ["leashed", "by its input alone"])
async def test_no_sandbox_outlives_a_killed_executor(how: str) -> None:
    async with holder(how) as (process, sandboxes):
        assert all(runs(pid) for pid in sandboxes)
        process.send_signal(signal.SIGKILL)
        await eventually(lambda: not any(runs(pid) for pid in sandboxes))


async def test_a_closed_sandbox_is_gone_though_it_was_busy() -> None:
    sandbox = await DenoSandbox.start(await sandbox_command(ExecutorSettings()))
    await sandbox.run(Program(code="for (;;) console.log(1);", args={}, seed="0" * 32, now=0))
    await sandbox.receive()
    await sandbox.close()
    assert not sandbox.alive
    assert not runs(sandbox.pid)
    await sandbox.close()


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("/nonexistent/deno",), "cannot be started"),
        (("false",), "ended with status 1"),
        (("sh", "-c", "echo oh no >&2; exit 3"), "status 3: oh no"),
        (("sh", "-c", "echo hello"), "wrote to its process's output"),
        (("sleep", "60"), "not ready within 0.3 s"),
    ],
    ids=["missing", "dies", "says why", "talks", "hangs"],
)
async def test_a_process_that_does_not_start_says_why(argv: tuple[str, ...], reason: str) -> None:
    command = DenoCommand(argv, 1000, 64, start_timeout_s=0.3 if argv[0] == "sleep" else 10)
    with pytest.raises(SandboxUnavailable, match=reason):
        await DenoSandbox.start(command)


async def test_a_pool_without_deno_is_unhealthy_and_says_why() -> None:
    command = DenoCommand(("/nonexistent/deno",), 1000, 64)
    async with DenoPool(partial(DenoSandbox.start, command), PoolSize(lease_timeout_s=0.1)) as pool:
        assert "/nonexistent/deno" in str(await eventually(pool.check))
        with pytest.raises(SandboxUnavailable, match="/nonexistent/deno"):
            async with pool.lease(ACME):
                pytest.fail("there is nothing to lease")


@pytest.mark.parametrize("turns", range(12))
async def test_a_start_given_up_midway_leaves_nothing(turns: int) -> None:
    command = await sandbox_command(ExecutorSettings(executor_walls="off"))
    start = asyncio.create_task(DenoSandbox.start(command))
    for _ in range(turns):
        await asyncio.sleep(0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start


STARTER = """
import asyncio, sys
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.app import sandbox_command
from pml_executor.settings import ExecutorSettings
from dataclasses import replace

async def main(mark):
    command = await sandbox_command(ExecutorSettings())
    command = replace(command, argv=[*command.argv, mark])
    print("starting", flush=True)
    await asyncio.gather(*(DenoSandbox.start(command) for _ in range(4)))

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("milliseconds", [0, 1, 2, 4, 8])
async def test_no_half_started_sandbox_outlives_a_killed_executor(milliseconds: int) -> None:
    mark = f"--starter-{os.getpid()}-{milliseconds}"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTER, mark, stdout=PIPE)
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await process.stdout.readline() == b"starting\n"
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), milliseconds / 1000)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    def nothing_is_left() -> bool:
        end_orphans(str(ExecutorSettings().executor_runtime.resolve()))  # as the next one would
        return not any(mark in line for line in command_lines())

    await eventually(nothing_is_left)
