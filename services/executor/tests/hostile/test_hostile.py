"""Hostile programs end as they must, whichever walls stand, and harm nobody else."""

import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from pml_common.bus.memory import MemoryBus
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.app import sandbox_command
from pml_executor.handlers.on_run_workflow import Executor, on_run_workflow
from pml_executor.settings import ExecutorSettings
from services.executor.tests.hostile.programs import Hostile, hostile_programs

pytestmark = pytest.mark.integration

HOSTILE = hostile_programs()
HEAP_MIB = 131
"""A size that no other sandbox on this machine has."""

LATE_S = 2.0
"""What a run may take beyond its deadline here, on a busy machine; the bench measures it."""


@pytest.fixture(scope="session")
async def pools(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[dict[str, DenoPool]]:
    """`walled`: the best walls of this machine; `open`: none; `bare`: none, and a Worker that
    keeps every global, so that what is below them is seen to hold without them."""
    settings = ExecutorSettings(executor_max_heap_mib=HEAP_MIB)
    unwalled = settings.model_copy(update={"executor_walls": "off"})
    bare = unwalled.model_copy(
        update={"executor_runtime": _bare_runtime(settings, tmp_path_factory)}
    )
    async with _pool(settings) as walled, _pool(unwalled) as open_, _pool(bare) as stripped:
        yield {"walled": walled, "open": open_, "bare": stripped}
    assert not _left_behind()


def _left_behind() -> list[str]:
    """Sandbox processes of these pools, known by their heap."""
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    mark = f"--max-old-space-size={HEAP_MIB}".encode()
    return [command.decode() for command in commands if mark in command]


def _bare_runtime(settings: ExecutorSettings, folders: pytest.TempPathFactory) -> Path:
    runtime = folders.mktemp("bare") / "runtime"
    shutil.copytree(settings.executor_runtime, runtime)
    reduce = runtime / "worker/globals.ts"
    kept = reduce.read_text().replace("!KEPT.includes(name)", "false")
    assert kept != reduce.read_text()
    reduce.write_text(kept)
    return runtime


@asynccontextmanager
async def _pool(settings: ExecutorSettings) -> AsyncGenerator[DenoPool]:
    command = await sandbox_command(settings)
    async with DenoPool(partial(DenoSandbox.start, command), PoolSize(spares=1)) as pool:
        yield pool


Run = Callable[[str, float], Awaitable[RunFinished]]


@pytest.fixture(params=["walled", "open", "bare"])
def site(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def run(
    site: str,
    pools: dict[str, DenoPool],
    make_command: Callable[..., RunWorkflow],
    make_executor: Callable[..., Executor],
) -> Run:
    async def run(code: str, timeout_s: float) -> RunFinished:
        executor = make_executor(MemoryBus(), pools[site], MemoryTools())
        (fact,) = await on_run_workflow(make_command(code, timeout_s=timeout_s), executor)
        assert isinstance(fact, RunFinished)
        return fact

    return run


@pytest.mark.parametrize("program", HOSTILE, ids=lambda program: program.id)
async def test_it_ends_as_it_must_and_the_next_program_runs(
    program: Hostile, site: str, run: Run
) -> None:
    fact = await run(program.code, program.timeout_s)
    assert _end(fact) in program.expected(bare=site == "bare"), fact
    assert fact.duration_ms / 1000 < program.timeout_s + LATE_S
    after = await run("return [typeof (globalThis as any).c, 1 + 1];", 10.0)
    assert after.result == ["undefined", 2]


def _end(fact: RunFinished) -> str:
    """What became of a program."""
    if fact.error is not None:
        return fact.error.kind
    return "refused" if isinstance(fact.result, dict) and "refused" in fact.result else "fine"


def test_there_are_at_least_sixty_of_them_in_every_group() -> None:
    groups = {program.group for program in HOSTILE}
    assert len(HOSTILE) >= 60
    assert groups == {
        "files",
        "network",
        "escalation",
        "resources",
        "forgery",
        "prototypes",
        "tenants",
    }
