"""Hostile programs end as they must, whichever walls stand, and harm nobody else."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from pml_common.bus.memory import MemoryBus
from pml_common.contracts.executor import RunFinished, RunWorkflow, WorkflowParked
from pml_common.contracts.scope import Scope
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.adapters.process_starter import SandboxProcess
from pml_executor.app import sandbox_command
from pml_executor.entrypoints.bus.on_run_workflow import RunDependencies, on_run_workflow
from pml_executor.settings import ExecutorSettings
from services.executor.tests.hostile.programs import Hostile, hostile_programs
from services.executor.tests.walled import bare_runtime

pytestmark = pytest.mark.integration

HOSTILE = hostile_programs()
HEAP_MIB = 131
"""A size that no other sandbox on this machine has."""

LATE_S = 2.0
"""What a run may take beyond its deadline here, on a busy machine; the bench measures it."""


OTHERS = Scope(org="others", project="webapp")


class Pool:
    """A pool that notes which scopes each process served."""

    def __init__(self, pool: DenoPool) -> None:
        self._pool = pool
        self.scopes: dict[SandboxProcess, set[Scope]] = {}

    @asynccontextmanager
    async def lease(self, scope: Scope) -> AsyncGenerator[SandboxProcess]:
        """See SandboxPool."""
        async with self._pool.lease(scope) as sandbox:
            self.scopes.setdefault(sandbox, set()).add(scope)
            yield sandbox


@pytest.fixture(scope="session")
async def pools(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[dict[str, Pool]]:
    """`walled`: the best walls of this machine; `open`: none; `bare`: none, and a Worker that
    keeps every global, so that what is below them is seen to hold without them; `shared`: such a
    Worker inside the best walls, in processes that run many programs of a scope."""
    settings = ExecutorSettings(executor_max_heap_mib=HEAP_MIB)
    unwalled = settings.model_copy(update={"executor_walls": "off"})
    bare = unwalled.model_copy(
        update={"executor_runtime": bare_runtime(tmp_path_factory.mktemp("bare"))}
    )
    shared = bare.model_copy(
        update={"executor_walls": settings.executor_walls, "executor_pool_mode": "per_scope"}
    )
    sites = {"walled": settings, "open": unwalled, "bare": bare, "shared": shared}
    async with AsyncExitStack() as stack:
        pools = {name: Pool(await stack.enter_async_context(_pool(sites[name]))) for name in sites}
        yield pools
    assert not _left_behind()
    assert all(len(scopes) == 1 for pool in pools.values() for scopes in pool.scopes.values())


def _left_behind() -> list[str]:
    """Sandbox processes of these pools, known by their heap."""
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    mark = f"--max-old-space-size={HEAP_MIB}".encode()
    return [command.decode() for command in commands if mark in command]


@asynccontextmanager
async def _pool(settings: ExecutorSettings) -> AsyncGenerator[DenoPool]:
    command = await sandbox_command(settings)
    async with DenoPool(partial(DenoSandbox.start, command), PoolSize(spares=1)) as pool:
        yield pool


End = RunFinished | WorkflowParked
Run = Callable[..., Awaitable[End]]
NEXT = "return [typeof (globalThis as any).c, 1 + 1];"


@pytest.fixture(params=["walled", "open", "bare", "shared"])
def site(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def run(
    site: str,
    pools: dict[str, Pool],
    make_command: Callable[..., RunWorkflow],
    make_executor: Callable[..., RunDependencies],
) -> Run:
    async def run(code: str, timeout_s: float, scope: Scope | None = None) -> End:
        executor = make_executor(MemoryBus(), pools[site], MemoryTools())
        command = make_command(code, timeout_s=timeout_s)
        if scope is not None:
            grant = command.grant.model_copy(update={"scope": scope})
            command = command.model_copy(update={"scope": scope, "grant": grant})
        (fact,) = await on_run_workflow(command, executor)
        assert isinstance(fact, End)
        return fact

    return run


@pytest.mark.parametrize("program", HOSTILE, ids=lambda program: program.id)
async def test_it_ends_as_it_must_and_the_next_program_runs(
    program: Hostile, site: str, run: Run
) -> None:
    fact = await run(program.code, program.timeout_s)
    assert _end(fact) in program.expected(bare=site in ("bare", "shared")), fact
    if isinstance(fact, RunFinished):
        assert fact.duration_ms / 1000 < program.timeout_s + LATE_S
    for scope in (None, OTHERS) if site == "shared" else (None,):
        after = await run(NEXT, 10.0, scope)
        assert isinstance(after, RunFinished)
        assert after.result == ["undefined", 2]


def _end(fact: End) -> str:
    """What became of a program."""
    if isinstance(fact, WorkflowParked):
        return "parked"
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
