"""The fork server: what a fork is given, how it ends, and what ends with the server."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_local.errors import PartFailedError
from pml_local.fork_server import ForkServer
from pml_local.process import ChildProcess, Command, descendants_of, is_running

pytestmark = pytest.mark.integration

PATHS = ["/nowhere/one", "/nowhere/other"]
PYTHON = Path(sys.executable).name
MODULE = "libs.pml_local.tests.support.forked"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[ForkServer]:
    """A fork server that has imported `wave`."""
    async with running(tmp_path) as one:
        yield one


@asynccontextmanager
async def running(folder: Path, *modules: str) -> AsyncGenerator[ForkServer]:
    one = await ForkServer.start(folder / "server.log", modules or ("wave",))
    try:
        yield one
    finally:
        await one.stop()


def command(server: ForkServer, *arguments: str) -> Command:
    argv = (sys.executable, "-m", MODULE, *arguments)
    log = server.process.command.log.with_name("module.log")
    return Command("module", argv, log, env={"GIVEN": "\udcff é"}, launcher=server)


async def facts(process: ChildProcess) -> dict[str, Any]:
    return await eventually(lambda: _facts(process.command.log))


def _facts(log: Path) -> dict[str, Any] | None:
    text = log.read_text() if log.exists() else ""
    return json.loads(text) if text.endswith("\n") else None


async def test_a_module_runs_as_in_a_process_of_its_own(server: ForkServer, tmp_path: Path) -> None:
    end, other = os.pipe()
    asked = command(server, "wait")
    env = {**asked.env, "PYTHONPATH": os.pathsep.join(PATHS)}
    given = replace(asked, env=env, cwd=tmp_path, pass_fds=(other,))
    process = await ChildProcess.start(given)
    os.close(other)
    found = await facts(process)
    assert found["argv"] == ["wait"]
    assert found["environment"] == env
    assert found["paths"] == [str(tmp_path), *PATHS]
    assert found["folder"] == str(tmp_path)
    assert found["input"] == ""
    assert found["leads its session"]
    assert found["preloaded"]
    assert {0, 1, 2, other} < set(found["descriptors"])
    assert len(found["descriptors"]) == 5  # one is that of the listing
    assert psutil.Process(process.pid).cmdline() == [sys.executable, "-m", MODULE, "wait"]
    assert psutil.Process(process.pid).name() == PYTHON
    assert await process.stop() == -signal.SIGTERM
    assert os.read(end, 1) == b""  # nobody else holds the descriptor
    os.close(end)


async def test_neither_the_server_nor_a_fork_begins_with_an_environment(server: ForkServer) -> None:
    process = await ChildProcess.start(command(server, "wait"))
    assert (await facts(process))["first environment"] == ""
    assert psutil.Process(server.process.pid).environ() == {}


@pytest.mark.parametrize("code", [0, 3])
async def test_an_exit_code_is_reported(server: ForkServer, code: int) -> None:
    process = await ChildProcess.start(command(server, "exit", str(code)))
    assert await process.wait() == code
    assert process.returncode == code


async def test_a_killed_fork_is_reaped_and_the_next_one_starts(server: ForkServer) -> None:
    first = await ChildProcess.start(command(server, "wait"))
    assert await first.kill() == -signal.SIGKILL
    assert descendants_of(server.process.pid) == []
    second = await ChildProcess.start(command(server, "exit", "0"))
    assert await second.wait() == 0


async def test_a_killed_server_takes_its_forks_along(server: ForkServer) -> None:
    process = await ChildProcess.start(command(server, "wait"))
    fork = psutil.Process(process.pid)
    await server.process.kill()
    assert await process.wait() == -signal.SIGKILL
    await eventually(lambda: not is_running(fork))
    with pytest.raises(PartFailedError, match="the fork server has ended"):
        await ChildProcess.start(command(server, "wait"))


async def test_a_server_without_a_supervisor_ends_with_its_forks(server: ForkServer) -> None:
    process = await ChildProcess.start(command(server, "wait"))
    server.disconnect()
    assert await server.process.wait() == 0
    assert await process.wait() == -signal.SIGKILL


async def test_a_start_that_is_given_up_leaves_no_process(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def give_up(*_: object) -> int:
        raise asyncio.CancelledError

    monkeypatch.setattr("pml_local.fork_server.ForkServer._pid", give_up)
    with pytest.raises(asyncio.CancelledError):
        await ChildProcess.start(command(server, "wait"))
    monkeypatch.undo()
    last = await ChildProcess.start(command(server, "exit", "0"))  # forked after the other
    await last.wait()
    await eventually(lambda: not descendants_of(server.process.pid))


async def test_a_module_that_starts_a_thread_is_not_preloaded(tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    sys.path.append(str(tmp_path))
    try:
        async with running(tmp_path, "threaded") as server:
            with pytest.raises(PartFailedError, match="2 threads after the import of threaded"):
                await ChildProcess.start(command(server, "exit", "0"))
    finally:
        sys.path.remove(str(tmp_path))
