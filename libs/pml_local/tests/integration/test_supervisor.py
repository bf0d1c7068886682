"""A whole supervisor process: how it ends and what it leaves behind."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from libs.pml_local.tests.integration import fake_supervisor
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.process import descendants_of, is_running
from pml_local.state import StackState, read_state

pytestmark = pytest.mark.integration
PARTS = {"nats", "postgres", "worker", "gateway"}


class Supervisors:
    """Starts `fake_supervisor.py` processes and records their descendants."""

    def __init__(self) -> None:
        self.processes: list[asyncio.subprocess.Process] = []
        self.family: list[psutil.Process] = []

    async def start(self, home: Path, *mode: str) -> asyncio.subprocess.Process:
        """Start a supervisor on a folder, not ready yet; its stderr is a pipe."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            fake_supervisor.__name__,
            str(home),
            *mode,
            stderr=asyncio.subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    async def start_ready(
        self, home: Path, *mode: str
    ) -> tuple[asyncio.subprocess.Process, StackState]:
        """Start a supervisor and wait until its stack is up; its descendants are recorded."""
        process = await self.start(home, *mode)
        state = await eventually(lambda: read_state(home))
        assert state.pid == process.pid
        self.family = descendants_of(process.pid)
        return process, state

    async def leaves_nothing(self) -> None:
        """Fail unless the recorded descendants end."""
        await eventually(lambda: not [one for one in self.family if is_running(one)])


@pytest.fixture
async def supervisors() -> AsyncIterator[Supervisors]:
    """Supervisor processes; killed after the test if still running."""
    made = Supervisors()
    yield made
    for process in made.processes:
        if process.returncode is None:
            os.kill(process.pid, signal.SIGKILL)
        await process.communicate()


async def _ended(process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(PATIENCE_S):
        return await process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly_with_no_process_and_no_state_left(
    supervisors: Supervisors, stack_home: Path, number: signal.Signals
) -> None:
    process, state = await supervisors.start_ready(stack_home)
    assert set(state.parts) == PARTS
    process.send_signal(number)
    assert await _ended(process) == 0
    await supervisors.leaves_nothing()
    assert read_state(stack_home) is None
    assert not (stack_home / "stack.json").exists()


async def test_killed_it_leaves_no_process_and_the_next_one_finds_the_data(
    supervisors: Supervisors, stack_home: Path
) -> None:
    process, state = await supervisors.start_ready(stack_home)
    connection = await asyncpg.connect(state.postgres_dsn)
    await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    await connection.close()
    process.kill()
    await _ended(process)
    await supervisors.leaves_nothing()
    assert read_state(stack_home) is None

    _, state = await supervisors.start_ready(stack_home)
    connection = await asyncpg.connect(state.postgres_dsn)
    assert await connection.fetchval("SELECT answer FROM kept") == 42
    await connection.close()


async def test_a_killed_fork_server_ends_everything_and_the_next_start_finds_the_data(
    supervisors: Supervisors, stack_home: Path
) -> None:
    process, state = await supervisors.start_ready(stack_home)
    worker = psutil.Process(state.parts["worker"].pid)
    fork_server = worker.parent()
    assert fork_server is not None
    assert fork_server.ppid() == process.pid
    fork_server.kill()
    _, stderr = await process.communicate()
    assert process.returncode == 1
    assert "fork-server ended with code -9, and all services with it" in stderr.decode()
    await supervisors.leaves_nothing()
    assert read_state(stack_home) is None
    _, state = await supervisors.start_ready(stack_home)
    assert set(state.parts) == PARTS


async def test_a_killed_service_comes_back_from_the_same_fork_server(
    supervisors: Supervisors, stack_home: Path
) -> None:
    _, state = await supervisors.start_ready(stack_home)
    killed = psutil.Process(state.parts["worker"].pid)
    fork_server = killed.ppid()
    killed.kill()

    def another() -> int | None:
        now = read_state(stack_home)
        part = now.parts.get("worker") if now is not None else None
        return part.pid if part is not None and part.pid != killed.pid else None

    assert psutil.Process(await eventually(another)).ppid() == fork_server


@pytest.mark.nightly
async def test_it_starts_at_once_after_another_was_killed(
    supervisors: Supervisors, stack_home: Path
) -> None:
    process, _ = await supervisors.start_ready(stack_home)
    process.kill()
    await _ended(process)
    _, state = await supervisors.start_ready(stack_home)
    assert set(state.parts) == PARTS


@pytest.mark.nightly
async def test_it_starts_after_it_was_killed_together_with_postgres(
    supervisors: Supervisors, stack_home: Path
) -> None:
    process, state = await supervisors.start_ready(stack_home)
    os.kill(state.parts["postgres"].pid, signal.SIGKILL)
    process.kill()
    await _ended(process)
    _, state = await supervisors.start_ready(stack_home)
    assert set(state.parts) == PARTS


async def test_a_second_one_on_the_same_folder_is_refused_and_harms_nothing(
    supervisors: Supervisors, stack_home: Path
) -> None:
    first, state = await supervisors.start_ready(stack_home)
    second = await supervisors.start(stack_home)
    _, stderr = await second.communicate()
    assert second.returncode != 0
    assert f"in use by process {first.pid}" in stderr.decode()
    assert read_state(stack_home) == state


async def test_a_signal_during_the_start_ends_it_too(
    supervisors: Supervisors, new_home: Path
) -> None:
    process = await supervisors.start(new_home)
    await eventually(lambda: (new_home / "logs" / "postgres.log").exists())
    supervisors.family = descendants_of(process.pid)
    process.terminate()
    assert await _ended(process) == 0
    await supervisors.leaves_nothing()


async def test_a_second_signal_kills_what_takes_its_time(
    supervisors: Supervisors, stack_home: Path
) -> None:
    process, state = await supervisors.start_ready(stack_home, "deaf")
    process.terminate()
    gateway = psutil.Process(state.parts["gateway"].pid)
    await eventually(lambda: not is_running(gateway))
    process.terminate()
    async with asyncio.timeout(PATIENCE_S):  # without the second signal it would wait 600 s
        assert await process.wait() == 0
    await supervisors.leaves_nothing()
