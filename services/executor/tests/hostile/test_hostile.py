"""Hostile programs end as expected inside any walls, and affect no other program."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from typing_extensions import override

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.process_starter import SandboxProcess
from pml_executor.app import sandbox_command
from pml_executor.ports import SandboxPool
from pml_executor.settings import ExecutorSettings
from services.executor.tests.hostile.programs import GENEROUS_S, Hostile, Kind, hostile_programs
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import deliver, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools
from services.executor.tests.support.realms import RealmPool, realm_pool
from services.executor.tests.support.sandboxes import bare_runtime

pytestmark = pytest.mark.integration

HOSTILE = hostile_programs()
HEAP_MIB = 131
"""A heap size that no other sandbox on this machine has."""

OTHERS = Scope(org="others", project="webapp")


class Pool(SandboxPool):
    """A pool that records which scopes each process served, and which process was leased last."""

    def __init__(self, pool: DenoPool | RealmPool) -> None:
        self._pool = pool
        self.scopes: dict[SandboxProcess, set[Scope | None]] = {}
        self.last: SandboxProcess | None = None

    @override
    @asynccontextmanager
    async def lease(
        self, owner: Scope | None, *, realm: bool = False
    ) -> AsyncGenerator[SandboxProcess]:
        self.last = None
        async with self._pool.lease(owner, realm=realm) as sandbox:
            self.scopes.setdefault(sandbox, set()).add(owner)
            self.last = sandbox
            yield sandbox


@pytest.fixture(scope="session")
async def pools(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[dict[str, Pool]]:
    """`walled`: the best walls of this machine; `open`: none; `bare`: none, and a Worker that
    keeps every global, which shows that the layers below hold without it; `shared`: such a Worker
    inside the best walls, in processes that run many programs of a scope; `realm`: the same with a
    realm for each program, where the one standing Worker keeps all names."""
    settings = ExecutorSettings(executor_max_heap_mib=HEAP_MIB)
    unwalled = settings.model_copy(update={"executor_walls": "off"})
    bare = unwalled.model_copy(
        update={"executor_runtime": bare_runtime(tmp_path_factory.mktemp("bare"))}
    )
    shared = bare.model_copy(
        update={"executor_walls": settings.executor_walls, "executor_pool_mode": "per_scope"}
    )
    settings = settings.model_copy(update={"executor_pool_mode": "single_use"})
    sites = {"walled": settings, "open": unwalled, "bare": bare, "shared": shared}
    async with AsyncExitStack() as stack:
        pools = {name: Pool(await stack.enter_async_context(_pool(sites[name]))) for name in sites}
        pools["realm"] = Pool(await stack.enter_async_context(realm_pool(settings)))
        yield pools
    assert not _left_behind()
    assert all(len(scopes) == 1 for pool in pools.values() for scopes in pool.scopes.values())


def _left_behind() -> list[str]:
    """Return the sandbox processes of these pools, identified by their heap size."""
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    mark = f"--max-old-space-size={HEAP_MIB}".encode()
    return [command.decode() for command in commands if mark in command]


@asynccontextmanager
async def _pool(settings: ExecutorSettings) -> AsyncGenerator[DenoPool]:
    command = await sandbox_command(settings)
    async with DenoPool(
        partial(DenoSandbox.start, command), PoolSize(spares=1, lease_timeout_s=60)
    ) as pool:
        yield pool


End = RunFinished | WorkflowParked
Run = Callable[..., Awaitable[End]]
KINDS: dict[str, Kind] = {
    "walled": "worker",
    "open": "worker",
    "bare": "bare",
    "shared": "bare",
    "realm": "realm",
}
NEXT = "return [typeof (globalThis as any).c, 1 + 1];"
UNWALLED = ("open", "bare")
FIRST_OF_GROUP = {program.group: program for program in reversed(HOSTILE)}
CASES = [
    pytest.param(
        site,
        program,
        id=f"{site}-{program.id}",
        # Without walls a program shows which layer stops it: a sample suffices for each change.
        marks=[pytest.mark.nightly]
        if site in UNWALLED and FIRST_OF_GROUP[program.group] is not program
        else [],
    )
    for site in KINDS
    for program in HOSTILE
]


@pytest.fixture
def site(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def run(
    site: str,
    pools: dict[str, Pool],
) -> Run:
    async def run(code: str, timeout_s: float, scope: Scope | None = None) -> End:
        deps = make_dependencies(MemoryBus(), pools[site], MemoryTools())
        command = make_command(code, timeout_s=timeout_s)
        if scope is not None:
            grant = command.grant.model_copy(update={"scope": scope})
            command = command.model_copy(update={"scope": scope, "grant": grant})
        (fact,) = await deliver(command, deps)
        assert isinstance(fact, End)
        return fact

    return run


@pytest.mark.parametrize(("site", "program"), CASES, indirect=["site"])
async def test_it_ends_as_it_must_and_the_next_program_runs(
    program: Hostile, site: str, pools: dict[str, Pool], run: Run
) -> None:
    kind = KINDS[site]
    fact = await run(program.code, program.timeout_s(kind))
    end = _end(fact)
    assert end in program.expected(kind), fact
    if end == "timeout":
        killed = pools[site].last  # None if its time was over before it had a process
        await eventually(lambda: killed is None or not killed.alive)
    for scope in (None, OTHERS) if site in ("shared", "realm") else (None,):
        after = await run(NEXT, GENEROUS_S, scope)
        assert isinstance(after, RunFinished)
        assert after.result == ["undefined", 2]


def _end(fact: End) -> str:
    """Return how a program ended."""
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
